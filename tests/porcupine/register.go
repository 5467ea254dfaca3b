package main

import (
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

type kind int

const (
	admit kind = iota
	refuse
	show
)

type input struct {
	kind  kind
	token int64
	// The id of a write; empty for a raise.
	id string
	// The ids that a read showed, in order.
	shown string
	// It may have had no effect.
	optional bool
}

// A mark, which never falls, and the ids so far: all of them in order, or the last.
type state struct {
	marked bool
	mark   int64
	ids    string
}

// The register of a guarded key, in which reads show all ids or the last one.
func register(all, optional bool) porcupine.Model {
	step := func(before state, in input) (bool, state) {
		newer := before.marked && before.mark > in.token
		switch in.kind {
		case refuse:
			return newer, before
		case show:
			return in.shown == before.ids, before
		}
		if newer {
			return false, before
		}
		after := state{true, in.token, before.ids}
		if in.id != "" && all {
			after.ids = with(before.ids, in.id)
		} else if in.id != "" {
			after.ids = in.id
		}
		return true, after
	}
	if !optional {
		return porcupine.Model{
			Init: func() interface{} { return state{} },
			Step: func(before, in, _ interface{}) (bool, interface{}) {
				fits, after := step(before.(state), in.(input))
				return fits, after
			},
		}
	}
	several := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{state{}} },
		Step: func(before, in, _ interface{}) []interface{} {
			var after []interface{}
			if in.(input).optional {
				after = append(after, before)
			}
			if fits, next := step(before.(state), in.(input)); fits {
				after = append(after, next)
			}
			return after
		},
	}
	return several.ToModel()
}

func with(ids, id string) string {
	var list []string
	if ids != "" {
		list = strings.Split(ids, "\x00")
	}
	at := sort.SearchStrings(list, id)
	if at == len(list) || list[at] != id {
		list = append(list[:at:at], append([]string{id}, list[at:]...)...)
	}
	return strings.Join(list, "\x00")
}
