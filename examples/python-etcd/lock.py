#!/usr/bin/env python3
"""A lock in etcd, taken by the documented transaction through etcd's JSON gateway, with Python's own library alone.

python3 lock.py ETCD PREFIX TIER TTL CLASS KEY    takes the lock, says so, and holds it until it is ended
"""
import base64
import json
import secrets
import signal
import sys
import threading
import time
import urllib.parse
import urllib.request


def b64(text):
    return base64.b64encode(text.encode()).decode()


class Lost(Exception):
    """The lock is not held, or may not be: no work starts."""


class Etcd:
    """etcd's JSON gateway. Its numbers of 64 bits are texts, and what is 0 or false is left out."""

    def __init__(self, url):
        self.url = url

    def ask(self, what, timeout=10, **body):
        request = urllib.request.Request(f"{self.url}/v3/{what}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return json.loads(answer.readline())  # A keepalive answers with a stream, of which one line is wanted.


class Hold:
    """A lock that is held. Work starts when the token is read from it."""

    def __init__(self, etcd, prefix, tier, ttl, class_name, key):
        self.etcd, self.prefix, self.tier, self.ttl = etcd, prefix, tier, ttl
        sent = boot_time()
        self.lease = etcd.ask("lease/grant", TTL=ttl)["ID"]
        self.deadline, self.draining = self.deadline_of(sent), False
        self.over = threading.Event()
        self.grant = secrets.token_hex(16)
        # Everything but A-Z a-z 0-9 - _ . : ~ is escaped, byte by byte.
        self.lock = f"{prefix}/lock/{class_name}/{urllib.parse.quote(key, safe=':')}"
        session = f"{int(self.lease):016x}"
        record = {"class": class_name, "key": key, "grant_id": self.grant, "session": session}
        self.record = b64(json.dumps(record))
        threading.Thread(target=self.renew, daemon=True).start()
        try:
            self.epoch, self.revision = self.take()
            self.confirm()
        except BaseException:
            self.end()  # With the lease goes whatever is still on its way.
            raise

    def token(self):
        """epoch * 2^48 + revision, for work that starts now: a text, since it is too large for a double."""
        if self.draining or boot_time() >= self.deadline:
            raise Lost("a keepalive has failed, or the deadline has passed")
        return str(self.epoch * 2**48 + int(self.revision))

    def header(self):
        """What a request presents as Fencing-Token."""
        return f'"{self.token()}";grant="{self.grant}"'

    def release(self):
        """Frees this grant's lock and no other's, with a record that tells a release from a loss."""
        released = {"grant_id": self.grant, "session": f"{int(self.lease):016x}", "token": str(self.epoch * 2**48 + int(self.revision))}
        ours = [
            compare("CREATE", self.lock + "/held", create_revision=self.revision),
            compare("VALUE", self.lock + "/held", value=self.record),
        ]
        free = [put(self.lock + "/released", b64(json.dumps(released)), self.lease), delete(self.lock + "/held")]
        freed = self.etcd.ask("kv/txn", compare=ours, success=free).get("succeeded", False)
        self.end()
        return freed

    def end(self):
        self.over.set()
        self.draining = True
        self.etcd.ask("lease/revoke", ID=self.lease)

    def take(self):
        """The one transaction, until it succeeds: the epoch and the revision that mint the token."""
        since = None  # The place in the queue, once there is one.
        place, held = f"{self.lock}/queue/{self.grant}", self.lock + "/held"
        while True:
            epoch, moved = self.in_force()
            still = [
                compare("MOD", f"{self.prefix}/epoch", mod_revision=moved),
                absent(f"{self.lock}/cancel/{self.grant}"),
            ]
            nobody_ahead = absent(self.lock + "/queue/", self.lock + "/queue0")
            if since is not None:
                nobody_ahead.update(result="GREATER", create_revision=str(int(since) - 1))
            grant = [put(held, self.record, self.lease)] + ([delete(place)] if since else [])
            queue = {"requestTxn": {"compare": still, "success": [put(place, self.record, self.lease)]}}
            answer = self.etcd.ask(
                "kv/txn",
                compare=still + [absent(held), nobody_ahead],
                success=grant,
                failure=[] if since else [queue],
            )
            if answer.get("succeeded"):
                return epoch, answer["header"]["revision"]
            if since is None and answer["responses"][0]["response_txn"].get("succeeded"):
                since = answer["header"]["revision"]
            if since is not None:
                self.wait(since, place, held)

    def wait(self, since, place, held):
        """Until nobody is ahead in the queue and the lock is free."""
        ahead = {"key": b64(self.lock + "/queue/"), "range_end": b64(self.lock + "/queue0"), "limit": "1"}
        ahead["max_create_revision"] = str(int(since) - 1)
        look = [{"requestRange": ahead}, {"requestRange": {"key": b64(held), "keys_only": True}}]
        while True:
            still_there = [compare("CREATE", place, create_revision=since)]
            answer = self.etcd.ask("kv/txn", compare=still_there, success=look)
            if not answer.get("succeeded"):
                raise Lost("the lease ended before the lock was free")
            if not any("kvs" in one["response_range"] for one in answer["responses"]):
                return
            time.sleep(0.1)

    def in_force(self):
        """The epoch, and the revision at which its record was last moved."""
        answer = self.etcd.ask("kv/range", key=b64(f"{self.prefix}/epoch"))
        if "kvs" not in answer:
            raise Lost("the store has no epoch record: fence epoch init")
        record = json.loads(base64.b64decode(answer["kvs"][0]["value"]))
        cluster = f"{int(answer['header']['cluster_id']) % 2**64:016x}"
        if record["cluster_id"] != cluster or record["tier"] != self.tier:
            raise Lost("the store is sealed: fence epoch advance")
        return record["epoch"], answer["kvs"][0]["mod_revision"]

    def confirm(self):
        """The lease may have ended before the answer came."""
        there = self.etcd.ask("kv/range", key=b64(self.lock + "/held")).get("kvs", [{}])[0]
        if (there.get("create_revision"), there.get("value")) != (self.revision, self.record):
            raise Lost("the grant was lost before it could be confirmed")

    def renew(self):
        while not self.over.wait(self.ttl / 3):
            sent = boot_time()
            try:
                left = int(self.etcd.ask("lease/keepalive", timeout=self.ttl / 3, ID=self.lease)["result"].get("TTL", 0))
            except OSError:
                self.draining = True
                continue
            if left <= 0 or boot_time() >= self.deadline:
                self.draining, self.deadline = True, 0.0
                return
            self.draining, self.deadline = False, self.deadline_of(sent)

    def deadline_of(self, sent):
        """Counted from the sending, less a margin."""
        return sent + self.ttl - max(0.25, self.ttl / 10)


def boot_time():
    return time.clock_gettime(time.CLOCK_BOOTTIME)  # It runs on while the machine is suspended.


def compare(target, key, **expected):
    return {"target": target, "result": "EQUAL", "key": b64(key), **expected}


def absent(key, end=None):
    return {**compare("CREATE", key, create_revision="0"), **({"range_end": b64(end)} if end else {})}


def put(key, value, lease):
    return {"requestPut": {"key": b64(key), "value": value, "lease": lease}}


def delete(key):
    return {"requestDeleteRange": {"key": b64(key)}}


if __name__ == "__main__":
    url, prefix, tier, ttl, class_name, key = sys.argv[1:]
    ends = {signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # They wait until they are waited for, in every thread.
    hold = Hold(Etcd(url), prefix, tier, int(ttl), class_name, key)
    print(f"Fencing-Token: {hold.header()}", flush=True)
    signal.sigwait(ends)
    print("released" if hold.release() else "lost", flush=True)
