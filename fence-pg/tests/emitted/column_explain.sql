SELECT fence.explain_column($1::text::regclass, $2::text, $3::text, $4::text, $5::bigint);
