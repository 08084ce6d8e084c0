/** What a browser would run on the sandbox's own origin. */
const ACTIVE =
  /^(?:text\/html|application\/xhtml\+xml|image\/svg\+xml|(?:text|application)\/(?:xml|javascript|[\w.-]+\+xml))/

/** Whether a browser would run what has a media type. */
export const isActiveType = (type: string): boolean => ACTIVE.test(type)
