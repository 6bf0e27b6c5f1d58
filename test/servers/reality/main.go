// The reference implementation of REALITY, for tests: its server, a client that imitates browsers, and a TLS server as their
// target. Each prints one line of JSON when it is ready or done, and ends with its standard input.
package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("expected server, client or target"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	address := flags.String("address", "", "host:port of the service that a client calls")
	dest := flags.String("dest", "", "host:port of the target of a server")
	key := flags.String("key", "", "X25519 key, base64url: private for a server, public for a client")
	shortId := flags.String("short-id", "", "hexadecimal")
	name := flags.String("name", "", "server name")
	browser := flags.String("browser", "chrome", "chrome, firefox or safari")
	bytes := flags.Int("bytes", 0, "how many bytes a client sends and wants back")
	rsa := flags.Bool("rsa", false, "target: an RSA key instead of P-256")
	classic := flags.Bool("classic", false, "target: X25519 alone, no hybrid")
	p256 := flags.Bool("p256", false, "target: P-256 alone, so that it asks for another hello")
	if err := flags.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	switch os.Args[1] {
	case "server":
		serve(*dest, bytesOf(*key), shortIdOf(*shortId), *name)
	case "client":
		call(*address, bytesOf(*key), shortIdOf(*shortId), *name, *browser, *bytes)
	case "target":
		target(*name, *rsa, *classic, *p256)
	default:
		fail(fmt.Errorf("unknown mode %s", os.Args[1]))
	}
}

func bytesOf(text string) []byte {
	bytes, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(bytes) != 32 {
		fail(fmt.Errorf("expected 32 bytes in base64url"))
	}
	return bytes
}

func shortIdOf(digits string) (id [8]byte) {
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		fail(err)
	}
	return id
}

func say(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		fail(err)
	}
	fmt.Println(string(text))
}

// Prints why there is no result, for the test to read.
func fail(err error) {
	text, _ := json.Marshal(map[string]string{"error": strings.TrimSpace(err.Error())})
	fmt.Println(string(text))
	os.Exit(1)
}

func untilStdinEnds() {
	_, _ = io.Copy(io.Discard, os.Stdin)
}
