// Sends an order, under the token and the grant id that its lock gave: go run . ORDER TOKEN GRANT
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func send(ctx context.Context, db *pgx.Conn, order int64, token int64, grant string) error {
	key := strconv.FormatInt(order, 10)
	var state string
	// Committed before the first read: from here on every older holder is refused.
	_, err := db.Exec(ctx, "SELECT fence.raise_mark('shop.order', $1, $2, $3)", key, token, grant) // the fence
	if err == nil {
		err = db.QueryRow(ctx, "SELECT state FROM orders WHERE id = $1", order).Scan(&state)
	}
	if err != nil {
		return err
	}
	fmt.Printf("order %d is %s; press Enter to send it\n", order, state)
	_, _ = fmt.Scanln() // However long this takes: the write below is refused once a newer holder has been here.
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		work := &pgx.Batch{}                                                          // It goes in one flight, and ends at the first error.
		work.Queue("SELECT fence.admit('shop.order', $1, $2, $3)", key, token, grant) // the fence
		work.Queue("UPDATE orders SET state = $1 WHERE id = $2", "sent by "+grant, order)
		return tx.SendBatch(ctx, work).Close()
	})
}

func main() {
	log.SetFlags(0)
	order, err := strconv.ParseInt(os.Args[1], 10, 64)
	token, err2 := strconv.ParseInt(os.Args[2], 10, 64)
	if err = errors.Join(err, err2); err != nil {
		log.Fatal(err)
	}
	db, err := pgx.Connect(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	err = send(context.Background(), db, order, token, os.Args[3])
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == "ZF001" { // the fence
		// Terminal for this grant: no retry, and no newer token for work that was begun under this one.
		log.Fatalf("refused, %s: %s", refused.Code, refused.Detail)
	} else if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("order %d sent by %s\n", order, os.Args[3])
}
