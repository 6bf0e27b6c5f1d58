package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const withinTime = 20 * time.Second

// Enters a hop whose target echoes, sends a megabyte, ends its direction, and reads until the other one ends.
func dialReality(address string, hopPublic, shortId []byte, name string) {
	connection := must(net.DialTimeout("tcp", address, withinTime))
	_ = connection.SetDeadline(time.Now().Add(withinTime))
	stream, err := enter(connection, hopPublic, shortId, name)
	if err != nil {
		fail(err)
	}
	if stream == nil {
		say(map[string]bool{"entered": false})
		return
	}
	sent := bytes.Repeat([]byte("a megabyte through REALITY, "), 1<<20/28)
	go func() {
		if _, err := stream.Write(sent); err == nil {
			_ = stream.CloseWrite()
		}
	}()
	got, err := io.ReadAll(stream)
	if err != nil {
		fail(err)
	}
	say(map[string]bool{"entered": true, "echoed": bytes.Equal(got, sent)})
}

// Nil if the target has answered, and not the hop.
func enter(connection net.Conn, hopPublic, shortId []byte, name string) (*inside, error) {
	own := newKey()
	hello := plainHello(name, own.PublicKey().Bytes())
	key, err := authKey(own, hopPublic, randomOf(hello))
	if err != nil {
		return nil, err
	}
	claim := claimOf([]byte{26, 1, 1}, uint32(time.Now().Unix()), shortId)
	hello = helloWith(hello, sealClaim(key, hello, claim))
	if _, err := connection.Write(record(recordHandshake, hello)); err != nil {
		return nil, err
	}
	header, serverHello, err := readRecord(connection)
	if err != nil || header[0] != recordHandshake {
		return nil, errors.Join(errors.New("no ServerHello"), err)
	}
	chosen, share, err := readServerHello(serverHello)
	if err != nil {
		return nil, err
	}
	shared, err := agree(own, share)
	if err != nil {
		return nil, err
	}
	transcript := joined(hello, serverHello)
	client, server, master := chosen.handshakeSecrets(shared, transcript)
	receive := chosen.sealer(server)
	bound, proven := ed25519.PublicKey(nil), false
	for messages := []byte{}; ; {
		for len(messages) < 4 || len(messages) < 4+int(binary.BigEndian.Uint32(messages)&0xffffff) {
			kind, content, err := readSealed(connection, receive)
			if err != nil || kind != recordHandshake {
				return nil, errors.Join(fmt.Errorf("a content of type %d in the handshake", kind), err)
			}
			messages = append(messages, content...)
		}
		size := 4 + int(binary.BigEndian.Uint32(messages)&0xffffff)
		one := messages[:size]
		messages = messages[size:]
		switch body := (&reader{rest: one[4:]}); one[0] {
		case messageCertificate:
			body.vector(1)
			list := &reader{rest: body.vector(3)}
			bound = boundKey(list.vector(3), key)
		case messageCertificateVerify:
			scheme, signature := body.number(2), body.vector(2)
			proven = bound != nil && scheme == 0x0807 && ed25519.Verify(bound, signedContent(chosen.sum(transcript)), signature)
		case messageFinished:
			if !bytes.Equal(one, chosen.finished(server, transcript)) {
				return nil, errors.New("a wrong Finished")
			}
			if bound == nil {
				return nil, nil
			}
			if !proven {
				return nil, errors.New("the hop did not prove its key")
			}
			transcript = append(transcript, one...)
			finished := must(chosen.sealer(client).seal(recordHandshake, chosen.finished(client, transcript), 0))
			if _, err := connection.Write(joined(changeRecord, finished)); err != nil {
				return nil, err
			}
			sending, receiving := chosen.applicationSecrets(master, transcript)
			return &inside{Conn: connection, receive: chosen.sealer(receiving), send: chosen.sealer(sending)}, nil
		}
		transcript = append(transcript, one...)
	}
}

func signedContent(sum []byte) []byte {
	return joined(bytes.Repeat([]byte{' '}, 64), []byte("TLS 1.3, server CertificateVerify\x00"), sum)
}

// The suite and the key share that a ServerHello chooses.
func readServerHello(hello []byte) (suite, []byte, error) {
	from := &reader{rest: hello}
	if from.number(1) != messageServerHello {
		return suite{}, nil, errors.New("no ServerHello")
	}
	body := &reader{rest: from.vector(3)}
	body.take(2 + 32)
	body.vector(1)
	chosen, known := suites[uint16(body.number(2))]
	body.take(1)
	extensions := extensionsOf(body.vector(2))
	share := &reader{rest: extensions[51]}
	share.number(2)
	key := share.vector(2)
	if body.short || share.short || !known || !bytes.Equal(extensions[43], []byte{3, 4}) {
		return suite{}, nil, errors.New("a ServerHello that is not of TLS 1.3")
	}
	return chosen, key, nil
}
