package main

import (
	"io"
	"net"
	"time"

	"github.com/xtls/reality"
)

// Echoes what agents send.
func serve(dest string, privateKey []byte, shortId [8]byte, name string) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	listener := reality.NewListener(inner, &reality.Config{
		DialContext:            (&net.Dialer{}).DialContext,
		Type:                   "tcp",
		Dest:                   dest,
		ServerNames:            map[string]bool{name: true},
		PrivateKey:             privateKey,
		MaxTimeDiff:            time.Minute,
		ShortIds:               map[[8]byte]bool{shortId: true},
		SessionTicketsDisabled: true,
	})
	say(map[string]any{"port": inner.Addr().(*net.TCPAddr).Port})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	untilStdinEnds()
}
