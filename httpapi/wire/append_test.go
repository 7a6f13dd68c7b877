package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// An answer written by hand is byte for byte what encoding/json writes, so that a
// field added to the type cannot be forgotten here.
func TestWrittenAppendJSON(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a/b", `"\`, "<&>", `<"&`, "\x7f\u2028é", "\xff", "\n"}))
	number := rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1}))
	rapid.Check(t, func(t *rapid.T) {
		w := &Written{
			Key: text.Draw(t, "key"), Version: number.Draw(t, "version"), Created: rapid.Bool().Draw(t, "created"),
			Deleted: rapid.Bool().Draw(t, "deleted"), Token: number.Draw(t, "token"), MaxToken: number.Draw(t, "maxToken"),
			Receipt: Receipt{
				Outcome: Outcome(text.Draw(t, "outcome")), Replayed: rapid.Bool().Draw(t, "replayed"),
				RequestID: text.Draw(t, "requestId"), Revision: number.Draw(t, "revision"),
				ClockMs: rapid.Int64().Draw(t, "clockMs"), At: text.Draw(t, "at"), Node: text.Draw(t, "node"),
			},
		}
		var want bytes.Buffer
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(w); err != nil {
			t.Fatal(err)
		}
		if got := append(w.AppendJSON([]byte("before")), '\n'); string(got) != "before"+want.String() {
			t.Fatalf("by hand %q, by encoding/json %q", got, want.String())
		}
	})
}
