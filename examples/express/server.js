'use strict';
// Orders over HTTP, each written by the holder of its lock, who presents its Fencing-Token; DATABASE_URL and PORT are set:
//
//   POST /orders/ID/fence             raises the mark: 204
//   PUT  /orders/ID  {"state":"..."}  writes the order: 200

const express = require('express');
const { Pool } = require('pg');

const pool = new Pool({ connectionString: process.env.DATABASE_URL, connectionTimeoutMillis: 5000 });
pool.on('error', (error) => console.error(error.message)); // a lost connection that nobody hears of ends the process
pool.on('connect', (db) => db.on('error', (error) => { db.lost = error; }));
const app = express();

const FIELD = /^"([1-9][0-9]{0,18})"; *grant="([A-Za-z0-9._:-]{1,64})"$/; // the fence
const ID = /^[1-9][0-9]{0,17}$/; // the fence: a key has one text, and a mark of 042 would not guard order 42

// How PostgreSQL's refusals are answered: each status tells the client something else to do.
const PROBLEMS = {
  ZF001: [412, 'stale'], ZF002: [428, 'missing-token'], ZF003: [400, 'malformed'], ZF004: [412, 'collision'], // the fence
  ZF005: [409, 'unknown-epoch'], ZF008: [503, 'unavailable'], '22003': [400, 'malformed'], '55P03': [503, 'blocked'], // the fence
  '40001': [503, 'retryable'], '25P03': [503, 'retryable'], down: [503, 'unavailable'], '23502': [422],
};

function refuse(response, [status, kind], detail) {
  if (status === 503) response.set('Retry-After', '1');
  const type = kind ? `urn:fence:problem:${kind}` : 'about:blank'; // the fence
  response.status(status).type('application/problem+json').json({ type, status, detail });
}

// Takes what the request claims: one field, whole, or none of it. The token stays a text, as a number would round it.
function claim(request, response, next) {
  if (!ID.test(request.params.id)) return refuse(response, [400, 'malformed-key'], 'an order is named by its number, without leading zeros'); // the fence
  const fields = request.headersDistinct['fencing-token'] ?? []; // the fence
  const [, token, grant] = FIELD.exec(fields[0]) ?? []; // the fence
  if (fields.length === 0) return refuse(response, [428, 'missing-token'], 'send the token of your grant as Fencing-Token'); // the fence
  if (fields.length > 1) return refuse(response, [400, 'more-than-one'], 'send one Fencing-Token'); // the fence
  if (!token) return refuse(response, [400, 'malformed'], 'Fencing-Token is "TOKEN";grant="GRANT-ID"'); // the fence
  request.claim = [request.params.id, token, grant]; // the fence
  next();
}

app.post('/orders/:id/fence', claim, async (request, response) => {
  await transaction((db) => db.query("SELECT fence.raise_mark('shop.order', $1, $2, $3)", request.claim)); // the fence
  response.status(204).end();
});

app.put('/orders/:id', claim, express.json(), async (request, response) => {
  const { rowCount } = await transaction(async (db) => {
    await db.query("SELECT fence.admit('shop.order', $1, $2, $3)", request.claim); // the fence
    return db.query('UPDATE orders SET state = $1 WHERE id = $2', [request.body?.state, request.params.id]);
  });
  if (rowCount === 0) return refuse(response, [404], 'no such order');
  response.json({ written: rowCount });
});

async function transaction(work) {
  const db = await pool.connect().catch((error) => { throw Object.assign(error, { code: 'down' }); });
  try {
    await db.query('BEGIN');
    const done = await work(db);
    await db.query('COMMIT');
    db.release();
    return done;
  } catch (error) {
    db.release(true); // What stands open on it nobody knows, so it does not go back to the pool.
    throw db.lost ?? error;
  }
}

// The client is told the first line of a refusal at most: DETAIL holds the mark, and the rest is not for strangers.
app.use((error, request, response, next) => {
  const problem = PROBLEMS[error.code] ?? (error.status < 500 ? [error.status] : [500, 'unknown-outcome']);
  if (problem[0] >= 500) console.error(error);
  refuse(response, problem, /^(ZF|23|55)/.test(error.code) ? error.message.split('\n')[0] : 'the log of this service says more');
});

const server = app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
