/** A link to a resource that is known by its id alone; it looks up the name. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { namedQuery } from '../named.js';
import type { NamedType } from '../named.js';
import { ResourceLink } from './resource-link.js';

interface NamedLinkProps {
  readonly type: NamedType;
  readonly id: string;
}

export function NamedLink({ type, id }: NamedLinkProps): ReactNode {
  const { data } = useQuery(namedQuery(type, id));
  return <ResourceLink type={type} id={id} name={data?.name ?? null} />;
}
