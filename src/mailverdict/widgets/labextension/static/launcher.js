// A tile in JupyterLab's launcher, and an entry in its command palette, that open the audit in a new notebook.
//
// JupyterLab loads a prebuilt extension as a container of webpack's module federation: `init` receives the modules that
// JupyterLab shares, `get` gives a factory of the extension. That is all a container has to be, so that nothing is built.

(() => {
  const COMMAND = "mailverdict:audit";
  const CODE = "from mailverdict.widgets import Audit\n\nAudit()";
  const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 22 22" width="22">
    <g class="jp-icon3" stroke="#616161" style="fill: none" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">
    <path d="M11 17H4a1.5 1.5 0 0 1-1.5-1.5v-10A1.5 1.5 0 0 1 4 4h13a1.5 1.5 0 0 1 1.5 1.5V9"/>
    <path d="m3 5 7.5 6L18 5"/><path d="m13.5 15.5 2.5 2.5 4-5"/></g></svg>`;
  let shared = {};

  async function load(name) {
    const [version] = Object.values(shared[name] ?? {});
    return version ? (await version.get())() : {};
  }

  async function makePlugin() {
    const { ILauncher } = await load("@jupyterlab/launcher");
    const { ICommandPalette } = await load("@jupyterlab/apputils");
    const { NotebookActions } = await load("@jupyterlab/notebook");
    const { LabIcon } = await load("@jupyterlab/ui-components");
    const id = "mailverdict:launcher";
    // Notebook 7 and Voila load this file too, and have no launcher.
    if (!ILauncher || !ICommandPalette || !NotebookActions || !LabIcon) return { id, autoStart: true, activate() {} };

    async function openAudit(app, cwd) {
      const panel = await app.commands.execute("notebook:create-new", { cwd, kernelName: "python3" });
      await panel.revealed;
      await panel.sessionContext.ready;
      panel.content.widgets[0].model.sharedModel.setSource(CODE);
      await NotebookActions.runAll(panel.content, panel.sessionContext);
    }

    function activate(app, launcher, palette) {
      app.commands.addCommand(COMMAND, {
        label: (args) => (args.isPalette ? "Verify E-mail Addresses" : "Verify e-mails"),
        caption: "Open the interactive audit of mailverdict in a new notebook",
        icon: new LabIcon({ name: COMMAND, svgstr: ICON }),
        execute: (args) => openAudit(app, args.cwd),
      });
      launcher?.add({ command: COMMAND, category: "Other", rank: 0 });
      palette?.addItem({ command: COMMAND, category: "Notebook Operations", args: { isPalette: true } });
    }

    return { id, autoStart: true, optional: [ILauncher, ICommandPalette], activate };
  }

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB.mailverdict = {
    init: (scope) => {
      shared = scope;
    },
    get: async () => {
      const plugin = await makePlugin();
      return () => ({ __esModule: true, default: plugin });
    },
  };
})();
