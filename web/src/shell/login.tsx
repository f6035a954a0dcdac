// Asks for the token: as a dialog when an action needs it, as the whole page when even reading does.
import { useState } from "preact/hooks";
import { useCell } from "../live/cell";
import { asking, logIn, session } from "../live/session";
import { Data } from "../parts/data";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { visible } from "../text/hostile";
import { sentence } from "../wire/http";

function TokenForm({ onGiven }: { onGiven: () => void }) {
  const [token, setToken] = useState("");
  const [trouble, setTrouble] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await logIn(token.trim());
      onGiven();
    } catch (error) {
      setTrouble(sentence(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form class="token-form" onSubmit={send}>
      <label>
        Token
        <input
          type="password"
          name="token"
          autocomplete="current-password"
          value={token}
          required
          aria-invalid={trouble !== null}
          aria-describedby="token-help"
          onInput={(event) => setToken(event.currentTarget.value)}
          ref={(field) => field?.focus()}
        />
      </label>
      <TokenHelp />
      {trouble === null ? null : (
        <p class="form-error" role="alert">
          <Icon name="warning" /> {visible(trouble)}
        </p>
      )}
      <div class="dialog-actions">
        <button type="submit" class="button primary" disabled={token.trim() === ""} aria-busy={isBusy}>
          Sign in
        </button>
      </div>
    </form>
  );
}

function TokenHelp() {
  const file = useCell(session)?.token_file;
  const where = file ? (
    <>
      The server keeps it in{" "}
      <code>
        <Data text={file} />
      </code>
      .
    </>
  ) : (
    "Ask whoever runs the server."
  );
  return (
    <p id="token-help" class="hint">
      {where} It is exchanged for a cookie that no script can read.
    </p>
  );
}

export function TokenDialog() {
  const answer = useCell(asking);
  if (answer === null) return null;
  return (
    <Dialog title="This needs the admin token" onClose={() => answer(false)}>
      <TokenForm onGiven={() => answer(true)} />
    </Dialog>
  );
}

export function LoginPage({ onGiven }: { onGiven: () => void }) {
  return (
    <main class="login">
      <div class="card">
        <h1>
          <span class="brand-mark" aria-hidden="true" />
          Millpond
        </h1>
        <p class="hint">This dashboard shows nothing without a token.</p>
        <TokenForm onGiven={onGiven} />
      </div>
    </main>
  );
}
