'use strict';
// Orders over HTTP, each written by the holder of its lock: server.js, with DATABASE_URL and PORT in the environment.
//
//   POST /orders/ID/fence             raises the mark: 204
//   PUT  /orders/ID  {"state":"..."}  writes the order: 200
//
// Both need a Fencing-Token.

const express = require('express');
const { Pool } = require('pg');

const pool = new Pool({ connectionString: process.env.DATABASE_URL });
const app = express();

// One field, whole. Node joins a repeated one with a comma, which is none of this.
const FIELD = /^"([1-9][0-9]{0,18})"; *grant="([A-Za-z0-9._:-]{1,64})"$/; // the fence

// How PostgreSQL's refusals are answered: each status tells the client something else to do.
const STATUS = { ZF001: 412, ZF002: 428, ZF003: 400, ZF004: 412, ZF005: 409, '22003': 400, '55P03': 503, 40001: 503 }; // the fence

// Takes what the request claims; the token stays a text, as a number of JavaScript would round it.
function claim(request, response, next) {
  const field = request.get('Fencing-Token'); // the fence
  const [, token, grant] = FIELD.exec(field ?? '') ?? []; // the fence
  if (field === undefined) return response.status(428).json({ error: 'send the token of your grant as Fencing-Token' }); // the fence
  if (!token) return response.status(400).json({ error: 'Fencing-Token is once "281474976710679";grant="b2f1"' }); // the fence
  request.claim = [request.params.id, token, grant]; // the fence
  next();
}

app.post('/orders/:id/fence', claim, async (request, response) => {
  await pool.query("SELECT fence.raise_mark('shop.order', $1, $2, $3)", request.claim); // the fence
  response.status(204).end();
});

app.put('/orders/:id', claim, express.json(), async (request, response) => {
  const db = await pool.connect();
  let failed = true; // A connection of which nobody knows what stands open on it does not go back to the pool.
  try {
    await db.query('BEGIN');
    await db.query("SELECT fence.admit('shop.order', $1, $2, $3)", request.claim); // the fence
    const { rowCount } = await db.query('UPDATE orders SET state = $1 WHERE id = $2', [request.body.state, request.params.id]);
    await db.query('COMMIT');
    failed = false;
    response.status(rowCount ? 200 : 404).json({ written: rowCount });
  } finally {
    db.release(failed);
  }
});

app.use((error, request, response, next) => {
  const status = STATUS[error.code] ?? error.status ?? 500; // the fence
  if (status === 503) response.set('Retry-After', '1');
  response.status(status).json({ error: error.message });
});

const server = app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
