import { fragmentOf } from './place.js'

/** The end of a heading's address, as forges make it: small letters, without signs, with hyphens. */
export const headingAnchor = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

/**
 * The place in the help that a relative link of a guide leads to: another guide, or a heading.
 *
 * @param guide The group whose guide has the link.
 * @param groups Every group that has a guide.
 */
export const guidePlace = (guide: string, groups: ReadonlySet<string>, href: string): string | undefined => {
  const [path = '', anchor = ''] = href.split('#')
  const other = /^(?:\.\.\/|\.\.\/\.\.\/plugins\/)([a-z-]+)\/?(?:README\.md)?$/.exec(path)?.[1]
  const group = path === '' || path === 'README.md' ? guide : other
  if (href === '' || group === undefined || !groups.has(group)) return undefined
  return fragmentOf('help', group, ...(anchor ? [anchor] : []))
}
