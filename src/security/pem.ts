/** Splits PEM text into its blocks. Not what the blocks hold. Linear in the text, whatever it is. */

interface PemBlock {
  /** `CERTIFICATE`. */
  readonly label: string;
  /** With its boundary lines. */
  readonly text: string;
  readonly bytes: Uint8Array;
  /** Whether lines such as `Proc-Type: 4,ENCRYPTED` precede the Base64. */
  readonly hasHeaders: boolean;
}

const boundary = /^-----(BEGIN|END) ([A-Z0-9 ]{1,64})-----$/;

/** The blocks of a text; what is between them is left out. Undefined when a block does not end, or ends as another one. */
export function pemBlocks(text: string): readonly PemBlock[] | undefined {
  const blocks: PemBlock[] = [];
  let open: { readonly label: string; readonly lines: string[] } | undefined;
  for (const line of text.split(/\r?\n/).map((raw) => raw.trim())) {
    const [, kind, label] = boundary.exec(line) ?? [];
    if (kind === undefined || label === undefined) {
      open?.lines.push(line);
    } else if (kind === 'BEGIN') {
      if (open !== undefined) return undefined;
      open = { label, lines: [] };
    } else {
      if (open?.label !== label) return undefined;
      blocks.push(blockOf(open));
      open = undefined;
    }
  }
  return open === undefined ? blocks : undefined;
}

function blockOf({ label, lines }: { readonly label: string; readonly lines: readonly string[] }): PemBlock {
  const body = lines.filter((line) => line !== '');
  return {
    label,
    text: [`-----BEGIN ${label}-----`, ...body, `-----END ${label}-----`, ''].join('\n'),
    bytes: Buffer.from(body.join(''), 'base64'),
    hasHeaders: body.some((line) => line.includes(':')),
  };
}
