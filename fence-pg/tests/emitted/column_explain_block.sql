SELECT fence.explain_block($1::text::regclass, $2::text, $3::text);
