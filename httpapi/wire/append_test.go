package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// An answer written by hand is byte for byte what encoding/json writes, so that a
// field added to the type cannot be forgotten here.
func TestAppendJSON(t *testing.T) {
	for _, answer := range []interface{ AppendJSON([]byte) []byte }{&Written{}, &Granted{}, &Renewed{}, &Changed{}} {
		t.Run(reflect.TypeOf(answer).Elem().Name(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				draw(t, "", reflect.ValueOf(answer).Elem())
				var want bytes.Buffer
				encoder := json.NewEncoder(&want)
				encoder.SetEscapeHTML(false)
				if err := encoder.Encode(answer); err != nil {
					t.Fatal(err)
				}
				if got := append(answer.AppendJSON([]byte("before")), '\n'); string(got) != "before"+want.String() {
					t.Fatalf("by hand %q, by encoding/json %q", got, want.String())
				}
			})
		})
	}
}

var (
	texts   = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a/b", `"\`, "<&>", `<"&`, "\x7f\u2028é", "\xff", "\n"}))
	numbers = rapid.OneOf(rapid.Uint64(), rapid.SampledFrom([]uint64{0, 1}))
)

// draw gives every field at any depth a value.
func draw(t *rapid.T, name string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			draw(t, v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.String:
		v.SetString(texts.Draw(t, name))
	case reflect.Uint64:
		v.SetUint(numbers.Draw(t, name))
	case reflect.Int64:
		v.SetInt(int64(numbers.Draw(t, name)))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	default:
		t.Fatalf("%s is of kind %s, which the test does not know", name, v.Kind())
	}
}
