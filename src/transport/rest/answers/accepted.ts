/** Sends compressed bytes to clients that accept them by `Accept-Encoding` (RFC 9110, section 12.5.3). */
import type { FastifyReply, FastifyRequest } from 'fastify';

/** Bytes that are the same for everybody. */
export interface Compressed {
  readonly plain: Buffer;
  /** Compressed variants, best first. */
  readonly variants: readonly { readonly coding: string; readonly bytes: Buffer }[];
}

/** Sends the best variant that the client takes. */
export function sendCompressed(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { plain, variants }: Compressed,
): FastifyReply {
  const variant = variants.find(({ coding }) => acceptsCoding(headers['accept-encoding'], coding));
  void reply.header(
    'vary',
    [reply.getHeader('vary'), 'accept-encoding'].filter((name) => name !== undefined).join(', '),
  );
  if (variant === undefined) return reply.send(plain);
  return reply.header('content-encoding', variant.coding).send(variant.bytes);
}

/** @param accepted the header */
function acceptsCoding(accepted: string | string[] | undefined, wanted: string): boolean {
  return String(accepted ?? '')
    .split(',')
    .map((part) => part.trim().split(/\s*;\s*q=/i))
    .some(([coding, weight = '1']) => coding?.toLowerCase() === wanted && Number(weight) > 0);
}
