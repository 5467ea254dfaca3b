SELECT principal = $4 AND fingerprint = $5, status, content_type, answer FROM completed_request WHERE class = $1 AND key = $2 AND idempotency_key = $3
