INSERT INTO completed_request (class, key, idempotency_key, principal, fingerprint, status, content_type, answer) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
