'use strict';
// Sends an order, under the token and the grant id that its lock gave: send.js ORDER TOKEN GRANT

const fs = require('node:fs');
const { Client } = require('pg');

// The token stays a text from end to end: a number of JavaScript would round it.
const [order, token, grant] = process.argv.slice(2);
const claim = [order, token, grant];

async function send(db) {
  // Committed before the first read: from here on every older holder is refused.
  await db.query("SELECT fence.raise_mark('shop.order', $1, $2, $3)", claim); // the fence
  const { rows: [{ state }] } = await db.query('SELECT state FROM orders WHERE id = $1', [order]);
  console.log(`order ${order} is ${state}; press Enter to send it`);
  fs.readSync(0, Buffer.alloc(1)); // However long this takes: the write below is refused once a newer holder has been here.
  await db.query('BEGIN');
  try {
    await db.query("SELECT fence.admit('shop.order', $1, $2, $3)", claim); // the fence
    await db.query('UPDATE orders SET state = $1 WHERE id = $2', [`sent by ${grant}`, order]);
    await db.query('COMMIT');
  } catch (error) {
    await db.query('ROLLBACK');
    throw error;
  }
  console.log(`order ${order} sent by ${grant}`);
}

async function main() {
  const db = new Client({ connectionString: process.env.DATABASE_URL });
  await db.connect();
  try {
    await send(db);
  } catch (error) {
    if (error.code !== 'ZF001') throw error; // the fence
    // Terminal for this grant: no retry, and no newer token for work that was begun under this one.
    console.error(`refused, ${error.code}: ${error.detail}`);
    process.exitCode = 1;
  } finally {
    await db.end();
  }
}

main();
