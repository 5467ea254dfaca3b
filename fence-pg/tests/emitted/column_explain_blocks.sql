SELECT string_agg(DISTINCT fence.explain_block($1::text::regclass, $2::text, k), '; ') FROM unnest($3::text[]) k;
