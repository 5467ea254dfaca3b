SELECT string_agg(DISTINCT fence.explain_block('"odd ""name"""."settlement_batch"'::text::regclass, 'id'::text, k), '; ') FROM unnest(ARRAY['1', 'it''s']::text[]) k;
