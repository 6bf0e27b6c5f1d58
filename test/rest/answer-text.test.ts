/** The text of an answer is the one that zod would make of it: the same bytes, and the same refusals. */
import fc from 'fast-check';
import { serializerCompiler } from '@fastify/type-provider-zod';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { answerCompiler } from '../../src/transport/rest/answers/answer-text.js';

const route = { method: 'GET', url: '/api/things', httpPart: 'body' } as const;

/** The text, or that the value was refused. */
function outcome(compiler: typeof answerCompiler, schema: z.ZodType, value: unknown): string {
  try {
    return compiler({ ...route, schema })(value);
  } catch (error) {
    return `refused: ${error instanceof Error ? error.constructor.name : String(error)}`;
  }
}

const both = (schema: z.ZodType, value: unknown): readonly [string, string] => [
  outcome(answerCompiler, schema, value),
  outcome(serializerCompiler as typeof answerCompiler, schema, value),
];

const inner = z.object({ host: z.string(), port: z.int().nullable() });
const thing = z.object({
  id: z.string().meta({ format: 'uuid' }),
  kind: z.enum(['tcp', 'udp']),
  fixed: z.literal([1, 'one', null]),
  ratio: z.number(),
  on: z.boolean(),
  none: z.null(),
  tags: z.record(z.string(), z.string()),
  inner: inner.optional(),
  some: z.array(inner.nullable()).optional(),
  either: z.union([z.object({ up: z.boolean() }), z.object({ down: z.string() })]),
  anything: z.unknown(),
  checked: z.string().max(3),
  upper: z.string().refine((value) => value === value.toUpperCase()),
});

const word = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a"b\\c', '\u2028é😀', '\ud800', '', '\u0000'));
const innerValue = fc.record(
  { host: word, port: fc.option(fc.integer()), secret: word },
  { requiredKeys: ['host', 'port'] },
);
const allowed = fc.record(
  {
    extra: fc.jsonValue(),
    upper: fc.constantFrom('', 'A', 'ÄB'),
    checked: fc.string({ maxLength: 3 }),
    anything: fc.jsonValue(),
    either: fc.oneof(fc.record({ up: fc.boolean(), more: word }), fc.record({ down: word })),
    some: fc.option(fc.array(fc.option(innerValue)), { nil: undefined }),
    inner: fc.option(innerValue, { nil: undefined }),
    tags: fc.dictionary(word, word),
    none: fc.constant(null),
    on: fc.boolean(),
    ratio: fc.double({ noNaN: true, noDefaultInfinity: true }),
    fixed: fc.constantFrom(1, 'one', null),
    kind: fc.constantFrom('tcp', 'udp'),
    id: word,
  },
  { requiredKeys: ['upper', 'checked', 'anything', 'either', 'tags', 'none', 'on', 'ratio', 'fixed', 'kind', 'id'] },
);

describe('the text of an answer', () => {
  it('has the bytes that zod makes, without the fields that the schema does not have', () => {
    fc.assert(
      fc.property(allowed, (value) => {
        const [text, byZod] = both(thing, value);
        expect(text).toBe(byZod);
        expect(text).not.toMatch(/^refused/);
      }),
    );
  });

  it('is refused where zod refuses the value, whichever field is wrong', () => {
    const wrong = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(undefined, NaN, Infinity, 0.5, 2 ** 60, new Date(0), { toJSON: () => 'x' }, [undefined], 'long'),
    );
    fc.assert(
      fc.property(allowed, fc.constantFrom(...Object.keys(thing.shape)), wrong, (value, field, other) => {
        const [text, byZod] = both(thing, { ...value, [field]: other });
        expect(text).toBe(byZod);
      }),
    );
  });

  it.each([
    ['a field that is missing', { ...inner.parse({ host: 'a', port: 1 }), port: undefined }],
    ['a list in place of an object', []],
    ['nothing', undefined],
    ['null', null],
  ])('is refused for %s', (_what, value) => {
    const [text, byZod] = both(inner, value);
    expect(text).toBe('refused: ResponseSerializationError');
    expect(text).toBe(byZod);
  });

  it('keeps what a schema with more than a type makes of a value', () => {
    const codec = z.object({
      at: z.codec(z.string(), z.date(), { decode: (text) => new Date(text), encode: (date) => date.toISOString() }),
    });
    expect(both(codec, { at: new Date(0) })).toEqual(Array(2).fill('{"at":"1970-01-01T00:00:00.000Z"}'));
    const open = z.looseObject({ a: z.string() });
    expect(both(open, { a: 'x', b: 1 })).toEqual(Array(2).fill('{"a":"x","b":1}'));
  });
});
