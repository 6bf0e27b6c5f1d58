/** How zod schemas become components of the OpenAPI document (`docs/contract/rest.md#beside-api`). */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runSync } from '../../src/kernel/pieces.js';
import { exampleOf, jsonSchemas } from '../../src/transport/rest/openapi/openapi-schemas.js';

const hopOf = (port: z.ZodType) => z.strictObject({ port: port.meta({ examples: [443] }) }).meta({ id: 'TestHop' });

describe('components of the OpenAPI document', () => {
  test('are the schemas with an id, wherever they stand, and only those that are used', () => {
    z.string().meta({ id: 'TestUnused' });
    const hop = hopOf(z.int());
    const [body, shown] = [z.strictObject({ hop }), z.object({ hops: z.array(hop) })];
    const { request, answer, components } = runSync(jsonSchemas([body], [shown]));
    expect(Object.keys(components)).toEqual(['TestHop']);
    expect(components['TestHop']).toMatchObject({ type: 'object', required: ['port'], examples: [{ port: 443 }] });
    expect(request(body)).toMatchObject({ properties: { hop: { $ref: '#/components/schemas/TestHop' } } });
    expect(answer(shown)).toMatchObject({
      properties: { hops: { type: 'array', items: { $ref: '#/components/schemas/TestHop' } } },
    });
  });

  test('keep the example of a field whose value is transformed', () => {
    const body = z.object({
      port: z
        .string()
        .transform(Number)
        .meta({ examples: ['443'], default: '80' }),
    });
    expect(runSync(jsonSchemas([body], [])).request(body)).toMatchObject({
      properties: { port: { type: 'string', examples: ['443'], default: '80' } },
    });
  });

  test('have one meaning for each id', () => {
    const both = [z.object({ a: hopOf(z.int()), b: hopOf(z.string()) })];
    expect(() => runSync(jsonSchemas(both, []))).toThrow('Duplicate schema id "TestHop"');
    const asked = hopOf(z.string().transform(Number).pipe(z.number()));
    expect(() => runSync(jsonSchemas([asked], [asked]))).toThrow('TestHop differs between requests and answers');
  });
});

describe('an example', () => {
  const components = { Name: { type: 'string', examples: ['edge-1'] } };

  test('is put together from those of the parts', () => {
    const schema = {
      type: 'object',
      properties: {
        name: { $ref: '#/components/schemas/Name' },
        kind: { enum: ['a', 'b'] },
        sent: { const: true },
        names: { type: 'array', items: { $ref: '#/components/schemas/Name' } },
        none: { anyOf: [{ type: 'integer', examples: [7] }, { type: 'null' }] },
        page: { type: 'integer', default: 1 },
        unknown: { type: 'string' },
      },
    };
    expect(exampleOf(schema, components)).toEqual({
      name: 'edge-1',
      kind: 'a',
      sent: true,
      names: ['edge-1'],
      none: 7,
      page: 1,
    });
  });

  test('of the whole comes before those of the parts', () => {
    const schema = {
      type: 'object',
      examples: [{ name: 'x' }],
      properties: { name: { type: 'string', examples: ['y'] } },
    };
    expect(exampleOf(schema, components)).toEqual({ name: 'x' });
    expect(exampleOf({ type: 'string' }, components)).toBeUndefined();
  });
});
