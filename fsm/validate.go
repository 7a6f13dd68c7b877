package fsm

import (
	"fmt"
	"strings"
)

// InvalidError says which field of a request is wrong and why. It is found
// before a command is proposed, so it never stands in the log.
type InvalidError struct{ Field, Problem string }

// Error returns the field and the problem.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}

// Validate checks everything about c that does not depend on the state. It
// returns an *InvalidError, or nil. Apply relies on it: only valid commands are
// proposed.
func Validate(c *Command) error {
	if err := validateRequest(c.Request, c.Op); err != nil {
		return err
	}
	switch op := c.Op.(type) {
	case *Put, *Delete, *Check:
		return validateWrite(op)
	case *Txn:
		return validateTxn(op)
	case *Acquire:
		return validateAcquire(op)
	case *Renew:
		if op.TTLMs != 0 {
			if err := validateTTL(op.TTLMs); err != nil {
				return err
			}
		}
		return validateLease(op.Resource, op.LeaseID)
	case *Release:
		return validateLease(op.Resource, op.LeaseID)
	case *Purge:
		if !isPrefix(op.Prefix) {
			return invalid("prefix", "does not end in a slash")
		}
		return validateResource("prefix", op.Prefix)
	case *Withdraw, *Revoke, *Require, *Seal:
		return validateResource("resource", Scope(op))
	case *Configure:
		return validateSettings(op.Settings)
	}
	return nil
}

func validateRequest(r Request, op Op) error {
	switch op.(type) {
	case *Tick, *Configure, *SetMember, *RemoveMember, *Found:
		return nil
	}
	if r.ID == "" {
		if sequenceOf(op) == 0 {
			return invalid("requestId", "is empty")
		}
	} else if problem := CheckRequestID(r.ID); problem != "" {
		return invalid("requestId", "%s", problem)
	}
	if r.Base > MaxNumber {
		return invalid("requestBase", "is above %d", uint64(MaxNumber))
	}
	if len(r.Reason) > MaxReasonBytes {
		return invalid("changeReason", "is longer than %d bytes", MaxReasonBytes)
	}
	if len(r.Author) > MaxReasonBytes {
		return invalid("author", "is longer than %d bytes", MaxReasonBytes)
	}
	return nil
}

// CheckRequestID reports what is wrong with a request ID, or "". A request ID is
// 1 to MaxRequestIDBytes visible ASCII characters.
func CheckRequestID(id string) string {
	if id == "" || len(id) > MaxRequestIDBytes {
		return "must be 1 to 128 characters"
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return "must be visible ASCII"
		}
	}
	return ""
}

func sequenceOf(op Op) uint64 {
	switch op := op.(type) {
	case *Put:
		return op.Sequence
	case *Delete:
		return op.Sequence
	}
	return 0
}

func validateWrite(op Op) error {
	var key string
	var cond Condition
	var token, sequence uint64
	switch op := op.(type) {
	case *Put:
		key, cond, token, sequence = op.Key, op.If, op.Token, op.Sequence
		if len(op.Value) > MaxValueBytes {
			return invalid("value", "is longer than %d bytes", MaxValueBytes)
		}
		if len(op.ContentType) > MaxContentTypeBytes {
			return invalid("contentType", "is longer than %d bytes", MaxContentTypeBytes)
		}
	case *Delete:
		key, cond, token, sequence = op.Key, op.If, op.Token, op.Sequence
	case *Check:
		key, cond = op.Key, op.If
		if cond == (Condition{}) {
			return invalid("check", "has no condition")
		}
	}
	if problem := CheckKey(key); problem != "" {
		return invalid("key", "%s", problem)
	}
	if token > MaxNumber || sequence > MaxNumber || cond.Revision > MaxNumber {
		return invalid("number", "is above %d", uint64(MaxNumber))
	}
	if cond.Absent && (cond.Exists || cond.Revision != 0) {
		return invalid("condition", "asks for a key that exists and does not")
	}
	if sequence != 0 && token == 0 {
		return invalid("sequence", "needs a token")
	}
	return nil
}

func validateTxn(op *Txn) error {
	if err := validateResource("resource", op.Resource); err != nil {
		return err
	}
	if len(op.Ops) == 0 || len(op.Ops) > MaxTxnOps {
		return invalid("ops", "must be 1 to %d operations", MaxTxnOps)
	}
	if len(op.Tokens) > MaxTokens {
		return invalid("tokens", "are more than %d", MaxTokens)
	}
	for _, token := range op.Tokens {
		if token == 0 || token > MaxNumber {
			return invalid("tokens", "must be 1 to %d", uint64(MaxNumber))
		}
	}
	seen := make(map[string]bool, len(op.Ops))
	bytes := 0
	for i, one := range op.Ops {
		if err := validateWrite(one); err != nil {
			return fmt.Errorf("ops[%d]: %w", i, err)
		}
		key, _ := target(one)
		if seen[key] {
			return invalid("ops", "name the key %q twice", key)
		}
		seen[key] = true
		if put, ok := one.(*Put); ok {
			bytes += len(put.Value)
		}
		if token, sequence := presented(one); token != 0 || sequence != 0 {
			return invalid("ops", "carry no tokens or sequence numbers of their own")
		}
	}
	if bytes > MaxTxnBytes {
		return invalid("ops", "hold more than %d bytes of values", MaxTxnBytes)
	}
	return nil
}

// target returns the key and condition of a put, delete or check.
func target(op Op) (string, Condition) {
	switch op := op.(type) {
	case *Put:
		return op.Key, op.If
	case *Delete:
		return op.Key, op.If
	case *Check:
		return op.Key, op.If
	}
	return "", Condition{}
}

// presented returns the token and sequence number of a put or delete.
func presented(op Op) (token, sequence uint64) {
	switch op := op.(type) {
	case *Put:
		return op.Token, op.Sequence
	case *Delete:
		return op.Token, op.Sequence
	}
	return 0, 0
}

func validateAcquire(op *Acquire) error {
	if op.Holder == "" || len(op.Holder) > MaxHolderBytes || strings.ContainsFunc(op.Holder, control) {
		return invalid("holder", "must be 1 to %d bytes without control characters", MaxHolderBytes)
	}
	if err := validateTTL(op.TTLMs); err != nil {
		return err
	}
	if op.WaitMs < 0 || op.WaitMs > MaxWaitMs {
		return invalid("waitMs", "must be 0 to %d", MaxWaitMs)
	}
	if op.IfToken > MaxNumber {
		return invalid("ifToken", "is above %d", uint64(MaxNumber))
	}
	if op.IfToken != 0 && op.WaitMs != 0 {
		return invalid("ifToken", "cannot wait: whoever is waited for would end the continuity")
	}
	return validateLease(op.Resource, op.LeaseID)
}

func validateTTL(ms int64) error {
	if ms < MinTTLMs || ms > MaxTTLMs {
		return invalid("ttlMs", "must be %d to %d", MinTTLMs, MaxTTLMs)
	}
	return nil
}

func validateLease(resource, leaseID string) error {
	if problem := CheckRequestID(leaseID); problem != "" {
		return invalid("leaseId", "%s", problem)
	}
	return validateResource("resource", resource)
}

func validateResource(field, resource string) error {
	if problem := CheckResource(resource); problem != "" {
		return invalid(field, "%s", problem)
	}
	return nil
}

func validateSettings(s Settings) error {
	switch {
	case s.RequestRetentionMs < 1000 || s.RequestRetentionMs > 30*24*3_600_000:
		return invalid("requestRetention", "must be 1 second to 30 days")
	case s.MaxRequests < 1 || s.MaxRequests > 100_000_000:
		return invalid("maxRequests", "must be 1 to 100000000")
	case s.History < 0 || s.History > 64:
		return invalid("history", "must be 0 to 64")
	case s.MaxValue < 1 || s.MaxValue > MaxValueBytes:
		return invalid("maxValue", "must be 1 to %d", MaxValueBytes)
	}
	return nil
}
