/** A text that is the same for everybody: made once, as bytes, plain and compressed. */
import { gzipSync } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** @returns sends the text that `make` gives at the first call, compressed to who accepts that */
export function madeOnce(
  contentType: string,
  make: () => string,
): (request: FastifyRequest, reply: FastifyReply) => void {
  let made: { readonly plain: Buffer; readonly compressed: Buffer } | undefined;
  return (request, reply) => {
    if (made === undefined) {
      const plain = Buffer.from(make());
      made = { plain, compressed: gzipSync(plain) };
    }
    const varies = [reply.getHeader('vary'), 'accept-encoding'].filter((header) => header !== undefined).join(', ');
    void reply.headers({ 'content-type': contentType, vary: varies });
    if (acceptsGzip(request.headers['accept-encoding'])) {
      void reply.header('content-encoding', 'gzip').send(made.compressed);
    } else {
      void reply.send(made.plain);
    }
  };
}

function acceptsGzip(accepted: string | string[] | undefined): boolean {
  return String(accepted ?? '')
    .split(',')
    .map((part) => part.trim().split(/\s*;\s*q=/i))
    .some(([coding, weight = '1']) => coding?.toLowerCase() === 'gzip' && Number(weight) > 0);
}
