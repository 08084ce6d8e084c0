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
 * @param file The file that has the link.
 * @param names The name of each guide, by its file.
 */
export const guidePlace = (file: string, names: ReadonlyMap<string, string>, href: string): string | undefined => {
  const { origin, pathname, hash } = URL.parse(href, `http://guides/${file}`) ?? {}
  if (origin !== 'http://guides' || pathname === undefined || hash === undefined || href === '') return undefined
  const name = names.get(pathname.slice(1).replace(/\/$/, '/README.md'))
  return name && fragmentOf('help', name, ...(hash.length > 1 ? [hash.slice(1)] : []))
}
