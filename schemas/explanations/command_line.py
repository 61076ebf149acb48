"""Codes that only the command ``ml`` raises.

Decides their explanations. Must not know where they are raised.
"""

from __future__ import annotations

from amphitrite.schemas.explanations.explanation import Explanation, Section

COMMAND_LINE = Section(
    "The command line",
    "These come from `ml` itself. No response has them.",
    (
        Explanation(
            "ServerUnreachable",
            "No control plane answers. The exit code is 3. Models that are being served go on answering.",
            (
                ("none was started", "run `ml server start -d`"),
                ("it runs elsewhere, or in another ML_HOME", "set `--server-url` or ML_SERVER_URL, or ML_HOME"),
                (
                    "its certificate is not trusted",
                    "set ML_CA_FILE to a file with its certificate authority",
                ),
                ("it is busy or has ended", "run `ml server status`, then `ml server logs`"),
            ),
        ),
        Explanation(
            "UsageError",
            "The command line is wrong: an unknown option, a missing one, or two that exclude each other. The exit "
            "code is 2.",
            (("a typing error, or another release", "run the command with `--help`; it shows examples"),),
        ),
        Explanation(
            "LocalFileError",
            "A file on this machine cannot be read or written, or does not hold what it should.",
            (
                ("the path is wrong, or not readable", "check the path that the message names, and its permissions"),
                ("the disk is full", "free some space"),
                ("a file of ML_HOME is damaged", "follow the hint; `ml server start -d` makes most files anew"),
            ),
        ),
        Explanation(
            "PortInUse",
            "Another process listens on the port that the server needs.",
            (
                ("another server of yours", "stop it: `ml server stop` with its ML_HOME"),
                ("another program", "choose another port: `--port`, `--scoring-port`"),
            ),
        ),
        Explanation(
            "ScoringFailed",
            "`ml online-endpoint invoke` got no answer, or a failure without a code of its own.",
            (
                ("the scoring address cannot be reached", "check that the proxy runs: `ml server status`"),
                ("the model failed", "read the message, then `ml online-deployment get-logs`"),
            ),
        ),
    ),
)
