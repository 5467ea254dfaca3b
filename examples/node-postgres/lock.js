// A lock in etcd, taken by the documented transaction through etcd's JSON gateway.
'use strict';
const crypto = require('node:crypto');

const b64 = (text) => Buffer.from(text).toString('base64');
const text = (base64) => Buffer.from(base64, 'base64').toString();
const hex = (number) => BigInt.asUintN(64, BigInt(number)).toString(16).padStart(16, '0');
// Everything but A-Z a-z 0-9 - _ . : ~ is escaped, byte by byte.
const escaped = (key) => encodeURIComponent(key).replace(/[!'()*]/g, (one) => '%' + hex(one.charCodeAt(0)).slice(-2).toUpperCase()).replaceAll('%3A', ':');

/** Takes the lock of `key` and keeps it alive: { token, grant, isHeld(), release() }. */
async function take({ etcd, prefix, tier, ttl, className, key }) {
  const ask = async (what, body) => {
    const answer = await fetch(`${etcd}/v3/${what}`, { method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) });
    if (!answer.ok) throw new Error(`etcd answered ${what} with ${answer.status}: ${await answer.text()}`);
    return answer.json();
  };
  const lease = (await ask('lease/grant', { TTL: ttl })).ID;
  let held = true;
  const renewal = setInterval(async () => {
    const answer = await ask('lease/keepalive', { ID: lease }).catch(() => null);
    if (!(Number(answer?.result?.TTL) > 0)) held = false;
  }, (ttl * 1000) / 3);
  const release = async () => {
    clearInterval(renewal);
    await ask('lease/revoke', { ID: lease }).catch(() => null);
  };

  const grant = crypto.randomBytes(16).toString('hex');
  const lock = `${prefix}/lock/${className}/${escaped(key)}`;
  const record = JSON.stringify({ class: className, key, grant_id: grant, session: hex(lease) });
  const absent = (name, end) => ({ target: 'CREATE', result: 'EQUAL', create_revision: '0', key: b64(name), ...(end && { range_end: b64(end) }) });
  for (;;) {
    const { header, kvs } = await ask('kv/range', { key: b64(`${prefix}/epoch`) });
    if (!kvs) throw new Error('the store has no epoch record: fence epoch init');
    const epoch = JSON.parse(text(kvs[0].value));
    if (epoch.cluster_id !== hex(header.cluster_id) || epoch.tier !== tier) throw new Error('the store is sealed');
    const granted = await ask('kv/txn', {
      compare: [
        absent(`${lock}/held`),
        absent(`${lock}/queue/`, `${lock}/queue0`),
        { target: 'MOD', result: 'EQUAL', mod_revision: kvs[0].mod_revision, key: b64(`${prefix}/epoch`) },
        absent(`${lock}/cancel/${grant}`),
      ],
      success: [{ requestPut: { key: b64(`${lock}/held`), value: b64(record), lease } }],
    });
    if (granted.succeeded) {
      const token = BigInt(epoch.epoch) * 2n ** 48n + BigInt(granted.header.revision);
      return { token: token.toString(), grant, isHeld: () => held, release };
    }
    if (!held) throw new Error('the lease ended before the lock was free');
    await new Promise((later) => setTimeout(later, 100));
  }
}

module.exports = { take };
