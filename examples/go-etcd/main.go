// Takes a lock in etcd by the documented transaction, and holds it until it is ended:
// go run . ETCD PREFIX TIER TTL CLASS KEY
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	etcd "go.etcd.io/etcd/client/v3"
)

// Locks are the locks of one tier, under one lease of this process.
type Locks struct {
	client       *etcd.Client
	prefix, tier string
	lease        etcd.LeaseID
}

// Hold is a lock that is held. While its lease lives, that is: the resource refuses the token once a newer one was seen.
type Hold struct {
	locks    *Locks
	held     string
	record   string
	revision int64
	Token    int64
	Grant    string
}

type record struct {
	Class   string `json:"class"`
	Key     string `json:"key"`
	Grant   string `json:"grant_id"`
	Session string `json:"session"`
}

var errSealed = errors.New("the store is sealed, or has no epoch: fence epoch init, or advance")

// Acquire waits in line for the lock of a key, and takes it.
func (locks *Locks) Acquire(ctx context.Context, class, key string) (*Hold, error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // It never fails.
	grant := hex.EncodeToString(random[:])
	base := locks.prefix + "/lock/" + class + "/" + escaped(key)
	held, place, cancel := base+"/held", base+"/queue/"+grant, base+"/cancel/"+grant
	text, err := json.Marshal(record{class, key, grant, fmt.Sprintf("%016x", int64(locks.lease))})
	if err != nil {
		return nil, err
	}
	var since int64 // The place in the queue, once there is one.
	for {
		epoch, moved, err := locks.inForce(ctx)
		if err != nil {
			return nil, err
		}
		still := []etcd.Cmp{
			etcd.Compare(etcd.ModRevision(locks.prefix+"/epoch"), "=", moved),
			etcd.Compare(etcd.CreateRevision(cancel), "=", 0),
		}
		put := func(key string) etcd.Op { return etcd.OpPut(key, string(text), etcd.WithLease(locks.lease)) }
		nobodyAhead := etcd.Compare(etcd.CreateRevision(base+"/queue/"), "=", 0)
		grants, otherwise := []etcd.Op{put(held)}, []etcd.Op{etcd.OpTxn(still, []etcd.Op{put(place)}, nil)}
		if since > 0 {
			nobodyAhead = etcd.Compare(etcd.CreateRevision(base+"/queue/"), ">", since-1)
			grants, otherwise = append(grants, etcd.OpDelete(place)), nil
		}
		all := append(still, etcd.Compare(etcd.CreateRevision(held), "=", 0), nobodyAhead.WithPrefix())
		answer, err := locks.client.Txn(ctx).If(all...).Then(grants...).Else(otherwise...).Commit()
		switch {
		case err != nil:
			return nil, err
		case answer.Succeeded:
			// The token is minted by this transaction's revision, and only when it succeeded.
			revision := answer.Header.Revision
			hold := &Hold{locks, held, string(text), revision, epoch<<48 + revision, grant}
			return hold, hold.confirm(ctx)
		case since == 0 && answer.Responses[0].GetResponseTxn().Succeeded:
			since = answer.Header.Revision
		}
		if since > 0 {
			if err := locks.wait(ctx, base, place, held, since); err != nil {
				return nil, err
			}
		}
	}
}

// The epoch in force, and the revision at which its record was last moved.
func (locks *Locks) inForce(ctx context.Context) (epoch, moved int64, err error) {
	read, err := locks.client.Get(ctx, locks.prefix+"/epoch")
	if err != nil || len(read.Kvs) == 0 {
		return 0, 0, errors.Join(err, errSealed)
	}
	var record struct {
		Epoch   int64  `json:"epoch"`
		Cluster string `json:"cluster_id"`
		Tier    string `json:"tier"`
	}
	err = json.Unmarshal(read.Kvs[0].Value, &record)
	if err != nil || record.Cluster != fmt.Sprintf("%016x", read.Header.ClusterId) || record.Tier != locks.tier {
		return 0, 0, errors.Join(err, errSealed)
	}
	return record.Epoch, read.Kvs[0].ModRevision, nil
}

// Waits until nobody is ahead in the queue and the lock is free: for one deletion at a time.
func (locks *Locks) wait(ctx context.Context, base, place, held string, since int64) error {
	for {
		older := append(etcd.WithLastCreate(), etcd.WithMaxCreateRev(since-1), etcd.WithKeysOnly())
		answer, err := locks.client.Txn(ctx).
			If(etcd.Compare(etcd.CreateRevision(place), "=", since)).
			Then(etcd.OpGet(base+"/queue/", older...), etcd.OpGet(held, etcd.WithKeysOnly())).
			Commit()
		if err != nil {
			return err
		}
		if !answer.Succeeded {
			return errors.New("the lease ended before the lock was free")
		}
		ahead := append(answer.Responses[0].GetResponseRange().Kvs, answer.Responses[1].GetResponseRange().Kvs...)
		if len(ahead) == 0 {
			return nil
		}
		if err := locks.untilDeleted(ctx, string(ahead[0].Key), answer.Header.Revision+1); err != nil {
			return err
		}
	}
}

func (locks *Locks) untilDeleted(ctx context.Context, key string, from int64) error {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second) // A watch whose connection died says nothing: look again.
	defer stop()
	for answer := range locks.client.Watch(ctx, key, etcd.WithRev(from)) {
		for _, event := range answer.Events {
			if event.Type == mvccpb.DELETE {
				return nil
			}
		}
	}
	return context.Cause(context.WithoutCancel(ctx))
}

// The lease may have ended before the answer came.
func (hold *Hold) confirm(ctx context.Context) error {
	read, err := hold.locks.client.Get(ctx, hold.held)
	if err != nil {
		return err
	}
	if len(read.Kvs) == 0 || read.Kvs[0].CreateRevision != hold.revision || string(read.Kvs[0].Value) != hold.record {
		return errors.New("the grant was lost before it could be confirmed")
	}
	return nil
}

// Release frees this grant's lock and no other's, with a record that tells a release from a loss.
func (hold *Hold) Release(ctx context.Context) (bool, error) {
	session := fmt.Sprintf("%016x", int64(hold.locks.lease))
	released := fmt.Sprintf(`{"grant_id":"%s","session":"%s","token":"%d"}`, hold.Grant, session, hold.Token)
	answer, err := hold.locks.client.Txn(ctx).
		If(etcd.Compare(etcd.CreateRevision(hold.held), "=", hold.revision), etcd.Compare(etcd.Value(hold.held), "=", hold.record)).
		Then(etcd.OpPut(strings.TrimSuffix(hold.held, "held")+"released", released, etcd.WithLease(hold.locks.lease)), etcd.OpDelete(hold.held)).
		Commit()
	return err == nil && answer.Succeeded, err
}

// Everything but A-Z a-z 0-9 - _ . : ~ is escaped, byte by byte.
func escaped(key string) string {
	var text strings.Builder
	for _, b := range []byte(key) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || strings.IndexByte("-_.:~", b) >= 0 {
			text.WriteByte(b)
		} else {
			fmt.Fprintf(&text, "%%%02X", b)
		}
	}
	return text.String()
}

func run(ctx context.Context, arguments []string) error {
	ttl, err := strconv.ParseInt(arguments[3], 10, 64)
	if err != nil {
		return err
	}
	client, err := etcd.New(etcd.Config{Endpoints: strings.Split(arguments[0], ","), DialTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	lease, err := client.Grant(ctx, ttl)
	if err != nil {
		return err
	}
	// With the lease goes whatever is held under it, or is still on its way.
	defer func() { _, _ = client.Revoke(context.WithoutCancel(ctx), lease.ID) }()
	renewals, err := client.KeepAlive(ctx, lease.ID)
	if err != nil {
		return err
	}
	locks := &Locks{client, arguments[1], arguments[2], lease.ID}
	hold, err := locks.Acquire(ctx, arguments[4], arguments[5])
	if err != nil {
		return err
	}
	fmt.Printf("Fencing-Token: \"%d\";grant=\"%s\"\n", hold.Token, hold.Grant)
	for range renewals { // Until the lease is gone, or this process is asked to end.
	}
	released, err := hold.Release(context.WithoutCancel(ctx))
	fmt.Println("released:", released)
	return err
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 7 {
		log.Fatal("go run . ETCD PREFIX TIER TTL CLASS KEY")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}
