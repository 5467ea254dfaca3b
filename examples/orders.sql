-- The table that the small examples write: guarded once, so that nobody, in any language, writes it without admission.
CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL);
INSERT INTO orders VALUES (42, 'new');
SELECT fence.declare('shop.order', 'entity');        -- a class of locks, granted by the tier "entity" of your lock stores
SELECT fence.register_epoch('entity', 1);            -- whose tokens are those of epoch 1
SELECT fence.protect('orders', 'shop.order', 'id');
-- The programs need no more than this, and should not connect as the table's owner, who may drop its trigger:
--   SELECT fence.grant_application('ROLE'); GRANT SELECT, UPDATE ON orders TO ROLE;
