/**
 * Reads the heads of the HTTP/2 frames that a client sends, byte by byte as they arrive, and counts them. It decodes no
 * payload and checks no order: HTTP/2 itself does that for the bytes let through. Serves the bounds of
 * `docs/contract/agent-protocol.md#the-listener`.
 */
import { constants } from 'node:http2';
import { limits } from '../../kernel/limits.js';
import { h2cPreface } from '../listener/sniff.js';

/** Length, type, flags, stream (RFC 9113, section 4.1). */
const headBytes = 9;
const typeAt = 3;
const flagsAt = 4;
const headers = 1;
const continuation = 9;

/** A class, because each agent has one: see `src/channel/noise/cipher-state.ts`. */
export class FrameReader {
  /** Bytes still to skip: of the preface, then of payloads. */
  #skip = h2cPreface.length;
  /** How many bytes of a head have arrived. */
  #at = 0;
  #length = 0;
  #type = 0;
  #flags = 0;
  /** Bytes of the current header block, as its frames announce them. */
  #block = 0;
  /** Frames whose head has arrived since `forget`. */
  frames = 0;
  /** Bytes of header blocks announced since then. */
  headerBytes = 0;
  /** Whether a header block over 8 KiB was among them. */
  largeBlock = false;

  read(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const passed = Math.min(this.#skip, bytes.length - at);
      this.#skip -= passed;
      at += passed;
      if (at === bytes.length) return;
      this.#readHead(bytes[at] ?? 0);
      at += 1;
    }
  }
  forget(): void {
    this.frames = 0;
    this.headerBytes = 0;
    this.largeBlock = false;
  }
  #readHead(byte: number): void {
    if (this.#at < typeAt) this.#length = this.#at === 0 ? byte : this.#length * 256 + byte;
    else if (this.#at === typeAt) this.#type = byte;
    else if (this.#at === flagsAt) this.#flags = byte;
    this.#at += 1;
    if (this.#at === headBytes) this.#begin();
  }
  #begin(): void {
    this.#at = 0;
    this.#skip = this.#length;
    this.frames += 1;
    if (this.#type !== headers && this.#type !== continuation) return;
    this.headerBytes += this.#length;
    this.#block = this.#type === headers ? this.#length : this.#block + this.#length;
    if (this.#block > limits.agent.headerListBytes) this.largeBlock = true;
    if ((this.#flags & constants.NGHTTP2_FLAG_END_HEADERS) !== 0) this.#block = 0;
  }
}
