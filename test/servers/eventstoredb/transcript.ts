/** The transcripts as data: the form of the file, how a request becomes a message, and how an answer is compared. */
import { details } from './messages.js';
import { decode, type Plain, type PlainValue } from './wire.js';

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
type JsonMessage = { readonly [key: string]: Json };

export interface Answer {
  readonly servers?: readonly string[];
  readonly recv?: readonly Json[];
  readonly status?: { readonly code: number; readonly details?: string; readonly trailers?: Record<string, string> };
  readonly live?: Readonly<Record<string, Answer>>;
}
export interface Step {
  readonly n: number;
  readonly note?: string;
  readonly do: 'call' | 'open' | 'send' | 'end' | 'cancel' | 'wait';
  readonly id?: string;
  readonly method?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly send?: readonly JsonMessage[];
  readonly end?: boolean;
  readonly ifClosed?: boolean;
  readonly ms?: number;
  readonly quietMs?: number;
  readonly timeoutMs?: number;
  readonly ignore?: readonly string[];
  readonly anyOrder?: boolean;
  readonly answer?: Answer;
  readonly answers?: readonly Answer[];
}
export interface Scenario {
  readonly id: string;
  readonly title: string;
  readonly steps: readonly Step[];
}
export interface Transcripts {
  readonly servers: readonly string[];
  readonly scenarios: readonly Scenario[];
}

/** Positions by label, within one scenario. */
export type Labels = Map<string, bigint>;

const isObject = (value: Json | undefined): value is JsonMessage =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function bytesOf(value: Json): Buffer {
  if (typeof value === 'string') return Buffer.from(value, 'utf8');
  if (!isObject(value)) throw new Error('bytes expected');
  const { base64, repeat, count } = value;
  if (typeof base64 === 'string') return Buffer.from(base64, 'base64');
  return Buffer.from(String(repeat).repeat(Number(count)));
}

function requestValue(key: string, value: Json, labels: Labels, now: () => number): PlainValue {
  if (key === 'data' || key === 'customMetadata') return bytesOf(value);
  if (typeof value === 'string' && key.endsWith('Position') && value.startsWith('@')) {
    const [label = '', plus] = value.split('+');
    const bound = labels.get(label);
    if (bound === undefined) throw new Error(`the label ${label} is not bound`);
    return String(bound + BigInt(plus ?? 0));
  }
  if (Array.isArray(value)) return value.map((one: Json) => requestValue('', one, labels, now));
  if (!isObject(value)) return value === null ? undefined : (value as PlainValue);
  const { nowPlusMs } = value;
  if (typeof nowPlusMs === 'number') {
    const at = now() + nowPlusMs;
    return { seconds: Math.floor(at / 1000), nanos: (at % 1000) * 1_000_000 };
  }
  return requestMessage(value, labels, now);
}

function requestMessage(message: JsonMessage, labels: Labels, now: () => number): Plain {
  return Object.fromEntries(
    Object.entries(message).map(([key, value]) => [key, requestValue(key, value, labels, now)]),
  );
}

/** The messages of one step, with repetitions expanded and labels replaced. */
export function requestsOf(send: readonly JsonMessage[], labels: Labels, now: () => number = Date.now): Plain[] {
  return send.flatMap((message) => {
    const { expand, first, message: pattern } = message;
    if (typeof expand !== 'number' || pattern === undefined) return [requestMessage(message, labels, now)];
    return Array.from({ length: expand }, (_, index) => {
      const hex = (Number(first) + index).toString(16).padStart(12, '0');
      const copy = JSON.parse(JSON.stringify(pattern).replaceAll('{n}', hex)) as JsonMessage;
      return requestMessage(copy, labels, now);
    });
  });
}

const textOf = (value: PlainValue): string =>
  value instanceof Uint8Array ? `bytes ${Buffer.from(value).toString('utf8').slice(0, 60)}` : JSON.stringify(value);

function freeMatches(expected: string, actual: PlainValue): boolean | undefined {
  switch (expected) {
    case '<any>':
      return true;
    case '<ticks>':
    case '<int>':
      return /^-?\d+$/.test(String(actual));
    case '<uuid>':
      return /^[0-9a-f-]{36}$/.test(String(actual));
    default:
      return undefined;
  }
}

function compareLabel(label: string, actual: PlainValue, labels: Labels, path: string): string[] {
  const position = BigInt(String(actual));
  const bound = labels.get(label);
  if (bound !== undefined) return bound === position ? [] : [`${path}: ${label} is ${bound}, not ${position}`];
  labels.set(label, position);
  const number = (name: string): number => Number(name.slice(1));
  const wrong = [...labels].find(
    ([other, value]) => other !== label && number(other) < number(label) !== value < position,
  );
  return wrong === undefined ? [] : [`${path}: ${label} and ${wrong[0]} are in the wrong order`];
}

/** A version without its patch. */
const releaseLine = (version: string): string => version.split('.').slice(0, 2).join('.');

/** @returns the differences, none when all is as expected. Binds labels that appear for the first time. */
export function differences(expected: Json, actual: PlainValue, labels: Labels, path: string): string[] {
  const differs = [`${path}: expected ${JSON.stringify(expected)}, got ${textOf(actual)}`];
  if (typeof expected === 'string') {
    const free = freeMatches(expected, actual);
    if (free !== undefined) return free ? [] : differs;
    if (path.endsWith('Position') && expected.startsWith('@')) {
      return actual === undefined ? differs : compareLabel(expected, actual, labels, path);
    }
  }
  if (path.endsWith('.eventStoreServerVersion')) {
    return releaseLine(String(expected)) === releaseLine(String(actual)) ? [] : differs;
  }
  if (actual instanceof Uint8Array) return bytesOf(expected).equals(actual) ? [] : differs;
  if (Array.isArray(expected)) {
    const list = Array.isArray(actual) ? (actual as readonly PlainValue[]) : [];
    if (list.length !== expected.length) return [`${path}: ${expected.length} items expected, got ${list.length}`];
    return expected.flatMap((one: Json, index) => differences(one, list[index], labels, `${path}[${index}]`));
  }
  if (!isObject(expected)) return String(expected) === String(actual) ? [] : differs;
  if (typeof actual !== 'object') return differs;
  return objectDifferences(expected, actual as Plain, labels, path);
}

function objectDifferences(expected: JsonMessage, actual: Plain, labels: Labels, path: string): string[] {
  const type = expected['@type'];
  if (typeof type === 'string') {
    const schema = details[type.split('.').at(-1) ?? ''];
    if (actual['typeUrl'] !== type || schema === undefined)
      return [`${path}: ${textOf(actual['typeUrl'])}, not ${type}`];
    const { '@type': _, ...fields } = expected;
    const value = Buffer.from((actual['value'] as Uint8Array | undefined) ?? []);
    return objectDifferences(fields, decode(schema, value), labels, path);
  }
  const present = Object.keys(actual).filter((key) => actual[key] !== undefined && !isEmptyBytes(actual[key]));
  const missing = Object.keys(expected).filter((key) => !present.includes(key) && expected[key] !== '<any>');
  const surplus = present.filter((key) => !(key in expected));
  const fields = Object.entries(expected)
    .filter(([key]) => present.includes(key))
    .flatMap(([key, value]) => differences(value, actual[key], labels, `${path}.${key}`));
  return [
    ...missing.map((key) => `${path}: ${key} is missing`),
    ...surplus.map((key) => `${path}: ${key} is too much: ${textOf(actual[key])}`),
    ...fields,
  ];
}

const isEmptyBytes = (value: PlainValue): boolean => value instanceof Uint8Array && value.length === 0;
