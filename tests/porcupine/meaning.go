package main

import "strings"

// What an answer means for the one who asked.
type meaning int

const (
	accepted meaning = iota
	stale
	declined
	unknown
	// Of no effect for certain: refused for another reason, blocked, failed, or the stored answer of an earlier request.
	nothing
)

// code is the first error that the database was seen to answer meanwhile.
func meaningOf(reply *reply, code string) meaning {
	if reply == nil {
		return unknown
	}
	if reply.By == "sql" {
		return meaningOfSQL(text(reply.Code), reply.Tag)
	}
	if reply.Status >= 200 && reply.Status < 300 {
		if reply.Stored {
			return nothing
		}
		return accepted
	}
	problem := text(reply.Problem)
	if at := strings.LastIndexAny(problem, ":/#"); at >= 0 {
		problem = problem[at+1:]
	}
	switch problem {
	case "stale":
		return stale
	case "collision", "unknown-epoch", "missing-token", "missing-grant", "malformed", "more-than-one":
		return nothing
	case "blocked", "retryable", "unavailable":
		if reply.Status == 503 {
			return nothing
		}
	}
	switch {
	case reply.Status == 412 && code == "ZF001":
		return stale
	case reply.Status == 412 && code == "ZF004", reply.Status == 428 && (code == "ZF002" || !strings.HasPrefix(code, "ZF") && code == ""),
		reply.Status == 400 && code == "ZF003", reply.Status == 409 && code == "ZF005":
		return nothing
	case reply.Status == 503 && (code == "55P03" || code == "40001" || code == "40P01"):
		return nothing
	case reply.Status >= 400 && reply.Status < 500:
		return declined
	}
	return unknown
}

func meaningOfSQL(code string, tag *string) meaning {
	switch {
	case strings.HasPrefix(code, "08"):
		return unknown
	case code == "ZF001":
		return stale
	case code != "":
		return nothing
	case tag == nil:
		return unknown
	}
	switch *tag {
	case "ROLLBACK", "UPDATE 0", "DELETE 0", "INSERT 0 0", "MERGE 0":
		return nothing
	}
	return accepted
}
