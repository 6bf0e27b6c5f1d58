// A peer of gateways that was written from docs/data-plane.md and docs/reality.md alone, for tests: each side of ENC and of
// REALITY between hops, and the test vectors made anew. Shares no code with the reference agent. Prints JSON, one line for each thing.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("expected enc-dialler, enc-hop, reality-dialler, reality-hop or vectors"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	address := flags.String("address", "", "host:port of the hop that a dialler calls, or of the target of a REALITY hop")
	key := flags.String("key", "", "X25519 key, base64url: private for a hop, public for a dialler")
	shortId := flags.String("short-id", "", "hexadecimal")
	name := flags.String("name", "", "server name")
	folder := flags.String("folder", "", "where the vectors are")
	if err := flags.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	switch os.Args[1] {
	case "enc-dialler":
		dialEnc(*address, keyOf(*key))
	case "enc-hop":
		serveEnc(keyOf(*key))
	case "reality-dialler":
		dialReality(*address, keyOf(*key), shortIdOf(*shortId), *name)
	case "reality-hop":
		serveReality(*address, keyOf(*key), shortIdOf(*shortId), *name)
	case "vectors":
		checkEncVectors(*folder + "/enc-vectors.json")
		checkRealityVectors(*folder + "/reality-vectors.json")
		say(map[string]any{"differences": differences})
	default:
		fail(fmt.Errorf("unknown mode %s", os.Args[1]))
	}
}

func keyOf(text string) []byte {
	bytes, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(bytes) != 32 {
		fail(fmt.Errorf("expected 32 bytes in base64url"))
	}
	return bytes
}

// Eight bytes, with zeros at the end.
func shortIdOf(digits string) []byte {
	id := make([]byte, 8)
	must(hex.Decode(id, []byte(digits)))
	return id
}

func say(line any) {
	fmt.Println(string(must(json.Marshal(line))))
}

// Prints why there is no result, for the test to read.
func fail(err error) {
	say(map[string]string{"error": strings.TrimSpace(err.Error())})
	os.Exit(1)
}

func must[T any](value T, err error) T {
	if err != nil {
		fail(err)
	}
	return value
}
