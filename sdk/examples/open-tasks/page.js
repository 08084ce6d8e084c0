// Runs in a frame of its own in the console, and asks the backend below.
export const activate = async host => {
  const { tasks } = await host.fetch('/tasks')
  const list = document.createElement('ul')
  for (const { path, line, text } of tasks) {
    const entry = document.createElement('li')
    entry.textContent = `${text} (${path}:${line})`
    list.append(entry)
  }
  const heading = document.createElement('h1')
  heading.textContent = tasks.length === 0 ? 'No open tasks' : `${tasks.length} open tasks`
  document.body.append(heading, list)
}
