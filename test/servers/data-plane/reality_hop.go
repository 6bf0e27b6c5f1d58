package main

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"sync"
	"time"
)

const allowedSeconds = 120

type realityHop struct {
	key           *ecdh.PrivateKey
	shortId       []byte
	name, address string
	certificate   []byte
	identity      ed25519.PrivateKey
	mutex         sync.Mutex
	seen          map[string]bool // randoms
}

// Greets and echoes whoever holds the key, and joins everybody else to the target.
func serveReality(target string, private, shortId []byte, name string) {
	public, identity, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		fail(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(0)}
	certificate := must(x509.CreateCertificate(rand.Reader, template, template, public, identity))
	of := &realityHop{privateKey(private), shortId, name, target, certificate, identity, sync.Mutex{}, map[string]bool{}}
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	say(map[string]int{"port": listener.Addr().(*net.TCPAddr).Port})
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go of.serve(client)
		}
	}()
	must(io.Copy(io.Discard, os.Stdin))
}

func (of *realityHop) serve(client net.Conn) {
	defer client.Close()
	_ = client.SetDeadline(time.Now().Add(withinTime))
	target, err := net.Dial("tcp", of.address)
	if err != nil {
		return
	}
	defer target.Close()
	_ = target.SetDeadline(time.Now().Add(withinTime))
	header, hello, err := readRecord(client)
	if err != nil {
		return
	}
	must(target.Write(joined(header, hello)))
	key := of.judge(hello)
	if key == nil {
		join(client, target)
		return
	}
	var said bytes.Buffer
	stream, err := of.answer(client, io.TeeReader(target, &said), hello, key)
	if err != nil {
		must(client.Write(said.Bytes()))
		join(client, target)
		return
	}
	must(stream.Write([]byte("220 hop\r\n")))
	must(io.Copy(stream, stream))
	_ = stream.CloseWrite()
}

func join(client, target net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, target}, {target, client}} {
		both.Add(1)
		go func() {
			defer both.Done()
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].(*net.TCPConn).CloseWrite()
		}()
	}
	both.Wait()
}

// What a hello offers, as far as a hop needs it.
type offer struct {
	name           string
	x25519, hybrid []byte
}

func readHello(hello []byte) (offered offer, ok bool) {
	from := &reader{rest: hello}
	if from.number(1) != messageClientHello {
		return offered, false
	}
	body := &reader{rest: from.vector(3)}
	body.take(2 + 32)
	if len(body.vector(1)) != 32 {
		return offered, false
	}
	body.vector(2)
	body.vector(1)
	extensions := extensionsOf(body.vector(2))
	names := &reader{rest: extensions[0]}
	names.take(2 + 1)
	offered.name = string(names.vector(2))
	for shares := (&reader{rest: (&reader{rest: extensions[51]}).vector(2)}); len(shares.rest) > 0 && !shares.short; {
		switch group, share := shares.number(2), shares.vector(2); group {
		case groupX25519:
			offered.x25519 = share
		case groupHybrid:
			offered.hybrid = share
		}
	}
	return offered, !body.short && !names.short
}

// The key that was agreed on with somebody who may enter; nil for everybody else.
func (of *realityHop) judge(hello []byte) []byte {
	offered, ok := readHello(hello)
	share := offered.x25519
	if share == nil && len(offered.hybrid) > 32 {
		share = offered.hybrid[len(offered.hybrid)-32:]
	}
	if !ok || offered.name != of.name || share == nil {
		return nil
	}
	key, err := authKey(of.key, share, randomOf(hello))
	if err != nil {
		return nil
	}
	claim, err := openClaim(key, hello)
	if err != nil || !bytes.Equal(claim[8:], of.shortId) {
		return nil
	}
	seconds := (&reader{rest: claim[4:8]}).number(4)
	of.mutex.Lock()
	defer of.mutex.Unlock()
	random := string(randomOf(hello))
	if skew := time.Now().Unix() - int64(seconds); skew > allowedSeconds || skew < -allowedSeconds || of.seen[random] {
		return nil
	}
	of.seen[random] = true
	return key
}

// Answers in the shape of the target's answer.
func (of *realityHop) answer(client net.Conn, target io.Reader, hello, key []byte) (*inside, error) {
	header, serverHello, err := readRecord(target)
	if err != nil || header[0] != recordHandshake {
		return nil, errors.New("the target does not begin with a ServerHello")
	}
	chosen, share, err := readServerHello(serverHello)
	if err != nil {
		return nil, err
	}
	lengths := []int{}
	for len(lengths) < 4 && (len(lengths) != 1 || lengths[0] <= 512) {
		header, content, err := readRecord(target)
		if err != nil {
			return nil, err
		}
		if header[0] == recordApplication {
			lengths = append(lengths, 5+len(content))
		}
	}
	own, shared, err := answerShare(hello, share)
	if err != nil {
		return nil, err
	}
	serverHello = bytes.Replace(serverHello, share, own, 1)
	transcript := joined(hello, serverHello)
	clientSecret, serverSecret, master := chosen.handshakeSecrets(shared, transcript)

	binding := bindingOf(key, of.identity.Public().(ed25519.PublicKey))
	der := joined(of.certificate[:len(of.certificate)-len(binding)], binding)
	entry := joined([]byte{0, byte(len(der) >> 8), byte(len(der))}, der, []byte{0, 0})
	messages := [][]byte{message(messageEncrypted, []byte{0, 0})}
	messages = append(messages, message(messageCertificate, joined([]byte{0, 0, byte(len(entry) >> 8), byte(len(entry))}, entry)))
	transcript = joined(transcript, messages[0], messages[1])
	signature := ed25519.Sign(of.identity, signedContent(chosen.sum(transcript)))
	messages = append(messages, message(messageCertificateVerify, joined([]byte{8, 7}, vector16(signature))))
	transcript = append(transcript, messages[2]...)
	messages = append(messages, chosen.finished(serverSecret, transcript))
	transcript = append(transcript, messages[3]...)
	if len(lengths) == 1 {
		messages = [][]byte{joined(messages...)}
	}
	flight, by := joined(record(recordHandshake, serverHello), changeRecord), chosen.sealer(serverSecret)
	for at, one := range messages {
		sealed, err := by.seal(recordHandshake, one, lengths[at])
		if err != nil {
			return nil, err
		}
		flight = append(flight, sealed...)
	}
	must(client.Write(flight))
	kind, finished, err := readSealed(client, chosen.sealer(clientSecret))
	if err != nil || kind != recordHandshake || !bytes.Equal(finished, chosen.finished(clientSecret, transcript)) {
		_ = client.Close()
		return nil, errors.New("the client did not finish")
	}
	receiving, sending := chosen.applicationSecrets(master, transcript)
	return &inside{Conn: client, receive: chosen.sealer(receiving), send: chosen.sealer(sending)}, nil
}

// This side's share in the group of the target's, and the secret.
func answerShare(hello, targets []byte) (share, secret []byte, err error) {
	offered, _ := readHello(hello)
	own := newKey()
	if len(targets) == 32 {
		secret, err = agree(own, offered.x25519)
		return own.PublicKey().Bytes(), secret, err
	}
	if len(offered.hybrid) != mlkem.EncapsulationKeySize768+32 {
		return nil, nil, errors.New("a group that was not offered")
	}
	key, err := mlkem.NewEncapsulationKey768(offered.hybrid[:mlkem.EncapsulationKeySize768])
	if err != nil {
		return nil, nil, err
	}
	quantum, ciphertext := key.Encapsulate()
	classic, err := agree(own, offered.hybrid[mlkem.EncapsulationKeySize768:])
	return joined(ciphertext, own.PublicKey().Bytes()), joined(quantum, classic), err
}
