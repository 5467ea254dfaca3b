package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// A line of a history, as far as it matters here.
type line struct {
	At      int64    `json:"at"`
	Kind    string   `json:"kind"`
	Guard   string   `json:"guard"`
	Op      *string  `json:"op"`
	Class   string   `json:"class"`
	Key     string   `json:"key"`
	Token   string   `json:"token"`
	Grant   *string  `json:"grant"`
	ID      *string  `json:"id"`
	Reply   *reply   `json:"reply"`
	Code    *string  `json:"sqlstate"`
	Began   int64    `json:"began"`
	IDs     []string `json:"ids"`
	Counted int      `json:"lines"`
}

type reply struct {
	By      string  `json:"by"`
	Status  int     `json:"status"`
	Problem *string `json:"problem"`
	Stored  bool    `json:"stored"`
	Code    *string `json:"sqlstate"`
	Tag     *string `json:"tag"`
}

type on struct{ class, key string }

type request struct {
	on       on
	op       string
	grant    string
	id       string
	began    int64
	ended    int64
	answered bool
	said     meaning
	reply    *reply
	code     string
}

type history struct {
	Guard    string
	tokens   map[[3]string]int64
	requests []*request
	reads    []line
	final    map[string]bool
	probed   map[string]map[on]bool
}

func read(file string) (*history, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	found := &history{tokens: map[[3]string]int64{}, final: map[string]bool{}, probed: map[string]map[on]bool{}}
	byOp := map[string]*request{}
	scanner := bufio.NewScanner(opened)
	scanner.Buffer(make([]byte, 1<<20), 1<<28)
	count, whole := 0, false
	for scanner.Scan() {
		count++
		var one line
		if err := json.Unmarshal(scanner.Bytes(), &one); err != nil {
			return nil, err
		}
		whole = one.Kind == "end" && one.Counted == count
		found.take(&one, byOp)
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	if !whole {
		return nil, errors.New("it is not whole")
	}
	for _, request := range found.requests {
		request.said = meaningOf(request.reply, request.code)
	}
	return found, nil
}

func (h *history) take(one *line, byOp map[string]*request) {
	switch one.Kind {
	case "run":
		h.Guard = one.Guard
	case "grant":
		token, _ := strconv.ParseInt(one.Token, 10, 64)
		name := [3]string{one.Class, one.Key, text(one.Grant)}
		if _, known := h.tokens[name]; !known {
			h.tokens[name] = token
		}
	case "request":
		made := &request{on: on{one.Class, one.Key}, op: text(one.Op), grant: text(one.Grant), id: text(one.ID), began: one.At}
		h.requests = append(h.requests, made)
		if byOp[made.op] == nil {
			byOp[made.op] = made
		}
	case "answer":
		if made := byOp[text(one.Op)]; made != nil && !made.answered {
			made.answered, made.reply, made.ended = true, one.Reply, max(one.At, made.began)
		}
	case "db_answer":
		if made := byOp[text(one.Op)]; made != nil && made.code == "" {
			made.code = text(one.Code)
		}
	case "read":
		h.reads = append(h.reads, *one)
	case "final":
		for _, id := range one.IDs {
			h.final[id] = true
		}
	case "probe":
		if id := text(one.ID); id != "" && meaningOf(one.Reply, text(one.Code)) == accepted {
			if h.probed[id] == nil {
				h.probed[id] = map[on]bool{}
			}
			h.probed[id][on{one.Class, one.Key}] = true
		}
	}
}

// Each key that an operation with a grant of the store's is on.
func (h *history) keys() []on {
	seen := map[on]bool{}
	var keys []on
	for _, request := range h.requests {
		if _, granted := h.token(request); granted && !seen[request.on] {
			seen[request.on] = true
			keys = append(keys, request.on)
		}
	}
	sort.Slice(keys, func(i, j int) bool {
		return keys[i].class+"\x00"+keys[i].key < keys[j].class+"\x00"+keys[j].key
	})
	return keys
}

func (h *history) token(r *request) (int64, bool) {
	token, granted := h.tokens[[3]string{r.on.class, r.on.key, r.grant}]
	return token, granted
}

// Whether what got no answer is known to have taken effect: its id was shown, and nothing else can have brought it.
func (h *history) shown(r *request) bool {
	if r.id == "" {
		return false
	}
	for _, other := range h.requests {
		same := other != r && other.on == r.on && other.id == r.id
		if same && (other.said == accepted || other.said == unknown) {
			return false
		}
	}
	for _, read := range h.reads {
		if read.Class == r.on.class && read.Key == r.on.key {
			for _, id := range read.IDs {
				if id == r.id {
					return true
				}
			}
		}
	}
	for elsewhere := range h.probed[r.id] {
		if elsewhere != r.on {
			return false
		}
	}
	return h.final[r.id]
}

// The operations on a key, and whether some may have had no effect.
func (h *history) operations(key on) ([]porcupine.Operation, bool) {
	var operations []porcupine.Operation
	ids := map[string]bool{}
	anyOptional := false
	add := func(step input, began, ended int64) {
		anyOptional = anyOptional || step.optional
		operations = append(operations, porcupine.Operation{Input: step, Call: began, Return: ended})
	}
	for _, r := range h.requests {
		token, granted := h.token(r)
		if r.on != key || !granted {
			continue
		}
		switch {
		case r.said == accepted:
			add(input{kind: admit, token: token, id: r.id}, r.began, r.ended)
		case r.said == stale:
			add(input{kind: refuse, token: token}, r.began, r.ended)
		case r.said == declined:
			add(input{kind: admit, token: token, optional: true}, r.began, r.ended)
		case r.said == unknown && h.shown(r):
			add(input{kind: admit, token: token, id: r.id}, r.began, ending(r))
		case r.said == unknown && r.id == "":
			add(input{kind: admit, token: token, optional: true}, r.began, ending(r))
		default:
			continue
		}
		last := &operations[len(operations)-1]
		if id := last.Input.(input).id; id != "" {
			ids[id] = true
		}
	}
	for _, read := range h.reads {
		if read.Class != key.class || read.Key != key.key {
			continue
		}
		var shown []string
		for _, id := range read.IDs {
			if ids[id] {
				shown = append(shown, id)
			}
		}
		sort.Strings(shown)
		add(input{kind: show, shown: strings.Join(shown, "\x00")}, read.Began, max(read.At, read.Began))
	}
	return operations, anyOptional
}

// What got no answer may take effect at any time.
func ending(*request) int64 { return math.MaxInt64 }

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}
