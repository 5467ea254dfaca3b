package main

import (
	"bufio"
	"os"
	"regexp"
	"strconv"

	"github.com/anishathalye/porcupine"
)

// A register of one number, as Jepsen asked etcd for it.
type asked struct {
	op       string
	from, to int
}

type told struct {
	exists, ok, unknown bool
	value               int
}

const none = -1

var number = porcupine.Model{
	Init: func() interface{} { return none },
	Step: func(before, in, out interface{}) (bool, interface{}) {
		held, ask, tell := before.(int), in.(asked), out.(told)
		switch ask.op {
		case "read":
			same := tell.exists && tell.value == held || !tell.exists && held == none
			return tell.unknown || same, held
		case "write":
			return true, ask.to
		}
		swapped := ask.from == held
		if swapped {
			held = ask.to
		}
		return tell.unknown || tell.ok == swapped, held
	},
}

var entry = regexp.MustCompile(`^INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(invoke|ok|fail|info)\s+:(read|write|cas)\s+(\S+)(?:\s+(\S+))?$`)

// The events of one of Jepsen's logs. What got no answer may take effect up to the end.
func jepsen(file string) ([]porcupine.Event, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	var events []porcupine.Event
	open := map[int]int{}
	id := 0
	scanner := bufio.NewScanner(opened)
	for scanner.Scan() {
		found := entry.FindStringSubmatch(scanner.Text())
		if found == nil {
			continue
		}
		process, _ := strconv.Atoi(found[1])
		what, op, first, second := found[2], found[3], digits(found[4]), digits(found[5])
		if what == "invoke" {
			in := asked{op: op, from: first, to: second}
			if op == "write" {
				in = asked{op: op, to: first}
			}
			events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.CallEvent, Value: in, Id: id})
			open[process] = id
			id++
			continue
		}
		call, known := open[process]
		answered := what == "ok" || what == "fail" && (op == "cas" || op == "read")
		if !known || !answered {
			continue
		}
		out := told{ok: what == "ok"}
		if op == "read" {
			out = told{exists: first != none, value: first, unknown: what == "fail"}
		} else if op == "cas" && found[4] == ":timed-out" {
			continue
		}
		events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.ReturnEvent, Value: out, Id: call})
		delete(open, process)
	}
	for process, call := range open {
		out := told{unknown: true}
		events = append(events, porcupine.Event{ClientId: process, Kind: porcupine.ReturnEvent, Value: out, Id: call})
	}
	return events, scanner.Err()
}

var run = regexp.MustCompile(`\d+`)

func digits(text string) int {
	value, err := strconv.Atoi(run.FindString(text))
	if err != nil {
		return none
	}
	return value
}
