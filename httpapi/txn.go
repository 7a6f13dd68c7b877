package httpapi

import (
	"fmt"
	"net/http"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// txn applies several operations, all or none.
func (h *Handler) txn(w http.ResponseWriter, c *call) error {
	var body wire.Txn
	if err := h.readJSON(w, c, maxTxnBody, &body); err != nil {
		return err
	}
	op := &fsm.Txn{Resource: body.Resource, Tokens: body.Tokens}
	if len(body.Ops) > fsm.MaxTxnOps {
		return invalid("ops", "must be 1 to %d operations", fsm.MaxTxnOps)
	}
	for i := range body.Ops {
		one, err := txnOp(&body.Ops[i], fmt.Sprintf("ops[%d].", i))
		if err != nil {
			return err
		}
		op.Ops = append(op.Ops, one)
	}
	return h.submit(w, c, op, 0)
}

func txnOp(o *wire.TxnOp, at string) (fsm.Op, error) {
	cond := fsm.Condition{}
	switch {
	case o.IfRevision != nil && o.IfExists != nil:
		return nil, invalid(at+"ifExists", "contradicts ifRevision; send one")
	case o.IfRevision != nil:
		cond = fsm.Condition{Revision: *o.IfRevision, Absent: *o.IfRevision == 0}
	case o.IfExists != nil:
		cond = fsm.Condition{Exists: *o.IfExists, Absent: !*o.IfExists}
	}
	if o.Op != wire.OpPut && (o.Value != wire.Value{} || o.ContentType != "") {
		return nil, invalid(at+"value", "and contentType belong to a put")
	}
	switch o.Op {
	case wire.OpPut:
		data, err := o.Bytes()
		if err != nil {
			return nil, invalid(at+"value", "%v", err)
		}
		if _, err := contentType(http.Header{"Content-Type": {o.ContentType}}); err != nil && o.ContentType != "" {
			return nil, invalid(at+"contentType", "must be visible ASCII of at most %d bytes", fsm.MaxContentTypeBytes)
		}
		return &fsm.Put{Key: o.Key, Value: data, ContentType: o.ContentType, If: cond}, nil
	case wire.OpDelete:
		return &fsm.Delete{Key: o.Key, If: cond}, nil
	case wire.OpCheck:
		return &fsm.Check{Key: o.Key, If: cond}, nil
	}
	return nil, invalid(at+"op", "must be put, delete or check")
}
