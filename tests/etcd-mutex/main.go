// etcd's own mutex, timed: reads lines `shared N` and `each N`, and answers each with the nanoseconds that N locks and unlocks
// took, on one session that they share or on a session for each.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func lockAndUnlock(ctx context.Context, session *concurrency.Session, number int) error {
	mutex := concurrency.NewMutex(session, fmt.Sprintf("mutex/order-%d", number))
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	return mutex.Unlock(ctx)
}

func run(endpoint string) error {
	ctx := context.Background()
	client, err := etcd.New(etcd.Config{Endpoints: []string{endpoint}, DialTimeout: 5 * time.Second})
	if err != nil {
		return err
	}
	defer client.Close()
	shared, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	defer shared.Close()
	number := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var kind string
		var count int
		if _, err := fmt.Sscan(lines.Text(), &kind, &count); err != nil {
			return err
		}
		began := time.Now()
		for range count {
			session := shared
			if kind == "each" {
				if session, err = concurrency.NewSession(client, concurrency.WithTTL(10)); err != nil {
					return err
				}
			}
			number++
			if err := lockAndUnlock(ctx, session, number); err != nil {
				return err
			}
			if kind == "each" {
				if err := session.Close(); err != nil {
					return err
				}
			}
		}
		fmt.Println(time.Since(began).Nanoseconds())
	}
	return lines.Err()
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("etcd-mutex ENDPOINT")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}
