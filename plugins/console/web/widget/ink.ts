/** Black or white, whichever reads better on a colour (WCAG 2.2, contrast ratio). */
export const inkOn = (colour: string): string => {
  const hex = colour.length === 4 ? colour.replace(/[^#]/g, digit => digit + digit) : colour
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map(at => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff'
}
