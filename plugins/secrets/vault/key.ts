import type { tags } from 'typia'

/** The name of a stored value. */
export type SecretKey = string & tags.MaxLength<128> & tags.Pattern<'^[A-Za-z_][A-Za-z0-9_]*$'>
