// Publishes a release of a document once, under the document's lock.
// usage: node publish.js ETCD PREFIX TTL DATABASE_URL DOCUMENT RELEASE [WRITES]
'use strict';
const net = require('node:net');
const { Client } = require('pg');
const { take } = require('./lock.js');

const CLASS = 'library.document';
const [etcd, prefix, ttl, databaseUrl, document, release, writes = '1'] = process.argv.slice(2);

// One point at which a test can keep this process; nothing without FENCE_GATES.
function gate(name) {
  if (!process.env.FENCE_GATES) return null;
  return new Promise((opened, failed) => {
    const socket = net.connect(process.env.FENCE_GATES, () => socket.write(`${name}\n`));
    socket.once('data', () => opened(socket.destroy())).once('error', failed).once('end', () => failed(new Error(`the gate ${name} was not opened`)));
  });
}

async function publish(db, { token, grant }, number) {
  await db.query('BEGIN');
  try {
    await db.query('SELECT fence.admit($1, $2, $3, $4)', [CLASS, document, token, grant]); // the fence
    await db.query('INSERT INTO edition (id, document, release) VALUES ($1, $2, $3)', [`${grant}:${number}`, document, release]);
    await db.query('COMMIT');
    console.log(`${release}: published`);
  } catch (error) {
    await db.query('ROLLBACK');
    console.log(`${release}: refused: ${error.code} ${error.detail}`);
  }
}

async function main() {
  const hold = await take({ etcd, prefix, tier: 'entity', ttl: Number.parseInt(ttl, 10), className: CLASS, key: document });
  const db = new Client({ connectionString: databaseUrl });
  db.on('error', (error) => console.error(error.message)); // a lost connection that nobody hears of ends the process, and leaves the lock
  await db.connect();
  try {
    await gate('after-grant');
    // Fence, then read: until the mark is committed, an older holder's write is rightly accepted.
    await db.query('SELECT fence.raise_mark($1, $2, $3, $4)', [CLASS, document, hold.token, hold.grant]);
    const { rows } = await db.query('SELECT id, release FROM edition WHERE document = $1', [document]);
    await gate('after-read');
    if (rows.some((row) => row.release === release)) return console.log(`${release}: published before`);
    if (!hold.isHeld()) throw new Error('the lease is gone');
    for (let number = 1; number <= Number(writes); number += 1) {
      await gate('before-send');
      await publish(db, hold, number);
    }
  } finally {
    await db.end();
    await hold.release();
  }
}

main().catch((error) => {
  console.error(`publish: ${error.message}`);
  process.exitCode = 1;
});
