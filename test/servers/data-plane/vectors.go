package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
)

// Makes the test vectors anew, and notes each value that comes out otherwise.

var differences = []string{}

func compare(what string, made, expected []byte) {
	if !bytes.Equal(made, expected) {
		differences = append(differences, what)
	}
}

// Bytes in hexadecimal.
type octets []byte

func (of *octets) UnmarshalText(text []byte) (err error) {
	*of, err = hex.DecodeString(string(text))
	return err
}

func read[T any](path string) (file T) {
	if err := json.Unmarshal(must(os.ReadFile(path)), &file); err != nil {
		fail(err)
	}
	return file
}

type encHandshake struct {
	Dialler octets `json:"dialler_ephemeral_private_key"`
	Hop     octets `json:"hop_ephemeral_private_key"`
	Own     uint32 `json:"dialler_index"`
	Peer    uint32 `json:"hop_index"`
	Hash    octets `json:"handshake_hash"`
	Packets []struct {
		From    string `json:"from"`
		Counter uint64 `json:"counter"`
		Kind    byte   `json:"kind"`
		Content octets `json:"content"`
		Packet  octets `json:"packet"`
	} `json:"packets"`
}

func index(of uint32) []byte { return []byte{byte(of >> 24), byte(of >> 16), byte(of >> 8), byte(of)} }

func checkEncVectors(path string) {
	file := read[struct {
		encHandshake
		Private   octets       `json:"hop_private_key"`
		Public    octets       `json:"hop_public_key"`
		KeyId     octets       `json:"key_id"`
		Handshake octets       `json:"handshake_packet"`
		Answer    octets       `json:"answer_packet"`
		Rekey     encHandshake `json:"rekey"`
	}](path)
	hop := privateKey(file.Private)
	compare("hop_public_key", hop.PublicKey().Bytes(), file.Public)
	compare("key_id", keyId(file.Public), file.KeyId)

	replay := func(name string, of encHandshake) (message, answer []byte) {
		dialling, answering := newHandshake(file.Public), newHandshake(file.Public)
		message = dialling.first(file.Public, privateKey(of.Dialler))
		answer = must(answering.second(hop, privateKey(of.Hop), message))
		if err := dialling.finish(answer); err != nil {
			differences = append(differences, name+": the answer")
		}
		compare(name+": handshake_hash of the dialler", dialling.hash, of.Hash)
		compare(name+": handshake_hash of the hop", answering.hash, of.Hash)
		up, down := dialling.split()
		sides := map[string]*session{
			"dialler": newSession(index(of.Own), index(of.Peer), up, down),
			"hop":     newSession(index(of.Peer), index(of.Own), down, up),
		}
		other := map[string]string{"dialler": "hop", "hop": "dialler"}
		for _, packet := range of.Packets {
			compare(name+": a packet", sides[packet.From].sealAt(packet.Counter, packet.Kind, packet.Content), packet.Packet)
			kind, content, _, ok := sides[other[packet.From]].open(packet.Packet)
			if !ok || kind != packet.Kind {
				differences = append(differences, name+": a packet does not open")
			}
			compare(name+": a content", content, packet.Content)
		}
		return message, answer
	}
	message, answer := replay("first session", file.encHandshake)
	compare("handshake_packet", joined([]byte{handshakePacket}, file.KeyId, index(file.Own), message), file.Handshake)
	compare("answer_packet", joined([]byte{answerPacket}, index(file.Own), index(file.Peer), answer), file.Answer)
	message, answer = replay("rekey", file.Rekey)
	inside := map[byte]octets{}
	for _, packet := range file.Packets {
		inside[packet.Kind] = packet.Content
	}
	compare("rekey: the message", joined(index(file.Rekey.Own), message), inside[kindRekey])
	compare("rekey: the answer", joined(index(file.Rekey.Own), index(file.Rekey.Peer), answer), inside[kindRekeyAnswer])
}

func checkRealityVectors(path string) {
	file := read[struct {
		Private     octets `json:"hop_private_key"`
		Public      octets `json:"hop_public_key"`
		Name        string `json:"server_name"`
		ShortId     string `json:"short_id"`
		Version     []int  `json:"version"`
		Seconds     uint32 `json:"seconds"`
		Share       octets `json:"dialler_share_private_key"`
		Random      octets `json:"random"`
		Empty       octets `json:"hello_with_empty_session_id"`
		At          int    `json:"session_id_at"`
		AuthKey     octets `json:"auth_key"`
		Claim       octets `json:"claim"`
		SessionId   octets `json:"session_id"`
		Hello       octets `json:"hello"`
		Temporary   octets `json:"temporary_public_key"`
		Certificate octets `json:"certificate"`
	}](path)
	hop, own := privateKey(file.Private), privateKey(file.Share)
	compare("hop_public_key", hop.PublicKey().Bytes(), file.Public)
	compare("random", randomOf(file.Empty), file.Random)
	if file.At != sessionIdAt {
		differences = append(differences, "session_id_at")
	}
	compare("auth_key of the dialler", must(authKey(own, file.Public, file.Random)), file.AuthKey)
	version := []byte{byte(file.Version[0]), byte(file.Version[1]), byte(file.Version[2])}
	claim := claimOf(version, file.Seconds, shortIdOf(file.ShortId))
	compare("claim", claim, file.Claim)
	compare("session_id", sealClaim(file.AuthKey, file.Empty, claim), file.SessionId)
	compare("hello", helloWith(file.Empty, file.SessionId), file.Hello)
	offered, _ := readHello(file.Hello)
	compare("server_name", []byte(offered.name), []byte(file.Name))
	compare("auth_key of the hop", must(authKey(hop, offered.x25519, randomOf(file.Hello))), file.AuthKey)
	compare("claim that the hop opens", must(openClaim(file.AuthKey, file.Hello)), file.Claim)
	compare("temporary_public_key", boundKey(file.Certificate, file.AuthKey), file.Temporary)
}
