/** Shown below a chooser with nothing to choose: says so, and leads to the form of a first one, in another tab. */
import { Text } from '@mantine/core';
import type { LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../session.js';
import { TextLink } from '../ui/links.js';
import { pagesOf } from '../ui/resource-link.js';
import { text } from './forms.text.js';

interface NoneYetProps {
  /** A type of resource, or the type of a credential. */
  readonly of: keyof typeof text.addable;
}

export function NoneYet({ of }: NoneYetProps): ReactNode {
  const mayAdd = useMay('operator');
  return (
    <Text size="sm" mt={4}>
      {text.noneYet}{' '}
      {mayAdd && (
        // The feed announces what is made there, so it can be chosen here.
        <TextLink {...formOf(of)} target="_blank">
          {text.addOne(text.addable[of])}
        </TextLink>
      )}
    </Text>
  );
}

function formOf(of: NoneYetProps['of']): Pick<LinkProps, 'to' | 'search'> {
  switch (of) {
    case 'node':
    case 'l4_upstream':
    case 'rollout_policy':
      return pagesOf(of).add;
    case 'x25519':
    case 'tls_cert':
    case 'reality':
      return { to: '/credentials/new', search: { key_type: of } };
    default:
      return of satisfies never;
  }
}
