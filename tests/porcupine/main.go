// An outsider's judgement of histories that the pause kit recorded: their operations as one register a key, by Porcupine.
//
//	porcupine-outsider histories FILE.jsonl ...   one line for each key: file, class, key, answer, seconds, operations
//	porcupine-outsider etcd FILE.log ...          one line for each of Jepsen's logs of etcd: file, answer, seconds
//
// It shares no code with the kit: it reads the files and decides what each answer means by itself.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anishathalye/porcupine"
)

// How long one key may take.
const limit = 30 * time.Second

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: porcupine-outsider histories|etcd FILE ...")
		os.Exit(2)
	}
	judge := map[string]func(string) error{"histories": histories, "etcd": etcd}[os.Args[1]]
	if judge == nil {
		fmt.Fprintf(os.Stderr, "no mode %q\n", os.Args[1])
		os.Exit(2)
	}
	for _, file := range os.Args[2:] {
		if err := judge(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(2)
		}
	}
}

func histories(file string) error {
	history, err := read(file)
	if err != nil {
		return err
	}
	for _, key := range history.keys() {
		operations, optional := history.operations(key)
		start := time.Now()
		answer := porcupine.CheckOperationsTimeout(register(history.Guard == "mark", optional), operations, limit)
		fmt.Printf("%s\t%s\t%s\t%s\t%.6f\t%d\n",
			filepath.Base(file), key.class, key.key, word(answer), time.Since(start).Seconds(), len(operations))
	}
	return nil
}

func etcd(file string) error {
	events, err := jepsen(file)
	if err != nil {
		return err
	}
	start := time.Now()
	answer := porcupine.CheckEventsTimeout(number, events, limit)
	fmt.Printf("%s\t%s\t%.6f\n", filepath.Base(file), word(answer), time.Since(start).Seconds())
	return nil
}

func word(answer porcupine.CheckResult) string {
	switch answer {
	case porcupine.Ok:
		return "explained"
	case porcupine.Illegal:
		return "unexplained"
	default:
		return "unknown"
	}
}
