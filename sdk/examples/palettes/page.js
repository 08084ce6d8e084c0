// Draws palettes of GIMP, and beside any file the colours that it names as #rrggbb.
const PALETTE = /^[ \t]*(\d{1,3})[ \t]+(\d{1,3})[ \t]+(\d{1,3})[ \t]*(.*)$/gm

const ofPalette = text =>
  [...text.matchAll(PALETTE)].map(([, red, green, blue, name]) => ({
    colour: `rgb(${red} ${green} ${blue})`,
    name: name || `${red} ${green} ${blue}`,
  }))

const ofText = text => [...new Set(text.match(/#[\da-f]{6}\b/gi))].map(colour => ({ colour, name: colour }))

const draw = colours => {
  const list = document.createElement('ul')
  for (const { colour, name } of colours) {
    const entry = document.createElement('li')
    entry.textContent = name
    entry.style.borderInlineStart = `2em solid ${colour}`
    list.append(entry)
  }
  document.body.replaceChildren(list)
}

export const activate = async host => {
  let colours = []
  const show = async () => {
    const { file, path } = host.surface
    if (file) colours = ofPalette(file.text)
    else if (path) colours = ofText((await host.call('GET /workspace/file', { path })).content ?? '')
    draw(colours)
  }
  host.on('surface', show)
  host.on('files', show)
  host.on('command', () => {
    const line = document.createElement('p')
    line.textContent = `${colours.length} colours`
    document.body.append(line)
  })
  await show()
}
