/**
 * Converts protocol buffers to plain objects and back by a table of fields. Plain objects look like proto3 JSON with
 * lower-camel names: a oneof is the present member, 64-bit integers are decimal strings (numbers are accepted), bytes
 * are Buffers. Both sides of the test server use it, so that the wire can carry what the client's own classes cannot.
 */

export interface Plain {
  [field: string]: PlainValue;
}
export type PlainValue = string | number | boolean | Uint8Array | Plain | readonly PlainValue[] | undefined;

/** `text` is UTF-8 bytes. */
export type Scalar = 'string' | 'text' | 'bytes' | 'bool' | 'uint32' | 'uint64' | 'int64' | 'map';
export type FieldType = Scalar | { readonly enum: Readonly<Record<number, string>> } | Schema;
/** Members of a oneof are encoded even at their default. */
export type Field = readonly [number: number, type: FieldType, how?: 'oneof' | 'repeated'];
export interface Schema {
  readonly name: string;
  readonly fields: Readonly<Record<string, Field>>;
}

const isSchema = (type: FieldType): type is Schema => typeof type === 'object' && 'fields' in type;

const two32 = 4_294_967_296;

function pushVarint(out: number[], value: string | number | bigint): void {
  let number = typeof value === 'number' ? value : Number(value);
  if (number < 0 || number > Number.MAX_SAFE_INTEGER) {
    let big = BigInt.asUintN(64, BigInt(value));
    for (; big > 127n; big >>= 7n) out.push(Number(big & 127n) | 128);
    out.push(Number(big));
    return;
  }
  for (; number > 127; number = Math.floor(number / 128)) out.push((number % 128) | 128);
  out.push(number);
}

function writeScalar(out: Uint8Array[], tag: number, type: Exclude<FieldType, Schema>, value: PlainValue): void {
  const head: number[] = [];
  if (typeof type === 'object') {
    pushVarint(head, tag * 8);
    pushVarint(head, Number(Object.entries(type.enum).find(([, name]) => name === value)?.[0] ?? 0));
    out.push(Uint8Array.from(head));
    return;
  }
  switch (type) {
    case 'bool':
    case 'uint32':
    case 'uint64':
    case 'int64':
      pushVarint(head, tag * 8);
      pushVarint(head, typeof value === 'string' ? value : Number(value));
      out.push(Uint8Array.from(head));
      return;
    case 'string':
    case 'text':
    case 'bytes': {
      const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : (value as Uint8Array);
      pushVarint(head, tag * 8 + 2);
      pushVarint(head, bytes.length);
      out.push(Uint8Array.from(head), bytes);
      return;
    }
    case 'map':
      for (const [key, entry] of Object.entries(value as Plain)) {
        const parts: Uint8Array[] = [];
        writeScalar(parts, 1, 'string', key);
        writeScalar(parts, 2, 'string', entry);
        writeNested(out, tag, parts);
      }
      return;
    default: {
      const never: never = type;
      throw new Error(`unknown type ${JSON.stringify(never)}`);
    }
  }
}

function writeNested(out: Uint8Array[], tag: number, parts: readonly Uint8Array[]): void {
  const head: number[] = [];
  pushVarint(head, tag * 8 + 2);
  pushVarint(
    head,
    parts.reduce((sum, part) => sum + part.length, 0),
  );
  out.push(Uint8Array.from(head), ...parts);
}

function writeMessage(out: Uint8Array[], schema: Schema, plain: Plain): void {
  for (const [name, [tag, type, how]] of Object.entries(schema.fields)) {
    const value = plain[name];
    if (value === undefined) continue;
    const values = how === 'repeated' ? (value as readonly PlainValue[]) : [value];
    for (const one of values) {
      if (isSchema(type)) {
        const parts: Uint8Array[] = [];
        writeMessage(parts, type, one as Plain);
        writeNested(out, tag, parts);
      } else if (how !== undefined || !isDefault(one)) {
        writeScalar(out, tag, type, one);
      }
    }
  }
}

function isDefault(value: PlainValue): boolean {
  if (value instanceof Uint8Array) return value.length === 0;
  return value === '' || value === 0 || value === '0' || value === false;
}

export function encode(schema: Schema, plain: Plain): Buffer {
  const parts: Uint8Array[] = [];
  writeMessage(parts, schema, plain);
  return Buffer.concat(parts);
}

interface Cursor {
  at: number;
}

/** The low and the high 32 bits. */
function readVarint(bytes: Buffer, cursor: Cursor): readonly [low: number, high: number] {
  let low = 0;
  let high = 0;
  for (let shift = 0; shift < 70; shift += 7) {
    const byte = bytes[cursor.at];
    if (byte === undefined) throw new Error('the message ends inside a number');
    cursor.at += 1;
    const part = byte & 127;
    if (shift < 28) low += part * 2 ** shift;
    else if (shift === 28) {
      low += (part & 15) * 2 ** 28;
      high += part >> 4;
    } else if (shift < 63) high += part * 2 ** (shift - 32);
    else high += (part & 1) * 2 ** 31;
    if (byte < 128) break;
  }
  return [low, high % two32];
}

function decimal([low, high]: readonly [number, number], signed: boolean): string {
  if (high < 0x200000) return String(high * two32 + low);
  const value = BigInt(high) * BigInt(two32) + BigInt(low);
  return (signed ? BigInt.asIntN(64, value) : value).toString();
}

function fromBytes(type: FieldType, bytes: Buffer): PlainValue {
  if (isSchema(type)) return decode(type, bytes);
  if (type === 'bytes') return bytes;
  if (type !== 'map') return bytes.toString('utf8');
  const entry = decode(mapEntry, bytes);
  return { [String(entry['key'] ?? '')]: String(entry['value'] ?? '') };
}

const mapEntry: Schema = { name: 'entry', fields: { key: [1, 'string'], value: [2, 'string'] } };

function fromVarint(type: FieldType, raw: readonly [number, number]): PlainValue {
  if (typeof type === 'object') return 'enum' in type ? (type.enum[raw[0]] ?? raw[0]) : undefined;
  if (type === 'bool') return raw[0] !== 0;
  return type === 'uint64' || type === 'int64' ? decimal(raw, type === 'int64') : raw[0];
}

const places = new WeakMap<Schema, ReadonlyMap<number, readonly [string, Field]>>();

function placesOf(schema: Schema): ReadonlyMap<number, readonly [string, Field]> {
  let fieldPlaces = places.get(schema);
  if (fieldPlaces === undefined) {
    fieldPlaces = new Map(Object.entries(schema.fields).map(([name, field]) => [field[0], [name, field]]));
    places.set(schema, fieldPlaces);
  }
  return fieldPlaces;
}

/** Fields at their default are absent, except 64-bit integers outside a oneof. Unknown fields are skipped. */
export function decode(schema: Schema, bytes: Buffer): Plain {
  const plain: Plain = {};
  const cursor: Cursor = { at: 0 };
  const fieldPlaces = placesOf(schema);
  while (cursor.at < bytes.length) {
    const [tag] = readVarint(bytes, cursor);
    const [name, field] = fieldPlaces.get(tag >>> 3) ?? [];
    let value: PlainValue;
    switch (tag & 7) {
      case 0: {
        const raw = readVarint(bytes, cursor);
        if (field !== undefined) value = fromVarint(field[1], raw);
        break;
      }
      case 1:
        cursor.at += 8;
        break;
      case 2: {
        const [length] = readVarint(bytes, cursor);
        if (field !== undefined) value = fromBytes(field[1], bytes.subarray(cursor.at, cursor.at + length));
        cursor.at += length;
        break;
      }
      case 5:
        cursor.at += 4;
        break;
      default:
        throw new Error(`wire type ${tag & 7}`);
    }
    if (name === undefined || field === undefined) continue;
    if (field[2] === 'repeated') plain[name] = [...((plain[name] as PlainValue[] | undefined) ?? []), value];
    else if (field[1] === 'map') plain[name] = { ...(plain[name] as Plain | undefined), ...(value as Plain) };
    else if (field[2] === 'oneof' || !isDefault(value)) plain[name] = value;
  }
  for (const [name, [, type, how]] of Object.entries(schema.fields)) {
    if ((type === 'uint64' || type === 'int64') && how === undefined) plain[name] ??= '0';
  }
  return plain;
}
