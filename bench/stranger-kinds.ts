/** What connections without a key do: `processes/strangers.ts` makes them, `strangers.ts` measures what each kind holds. */
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
