/** Kinds of connections without a key: `processes/strangers.ts` opens them, `strangers.ts` measures their memory. */
export const kinds = [
  'silent',
  'proxy_header_cut_off',
  'half_preface',
  'preface',
  'settings',
  'one_call',
  'four_calls_with_large_headers',
  'half_header_list',
  'half_frame',
  'half_request',
  'request_in_pieces',
  'header_table',
  'pings',
] as const;
export type Kind = (typeof kinds)[number];
