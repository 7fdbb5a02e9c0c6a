<?php
// php run.php FILE: FILE has the verify() that is called.
require $argv[1];
foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $line) {
    $fields = explode("\t", $line);
    $headers = [];
    foreach (['Webhook-Id', 'Webhook-Timestamp', 'Webhook-Signature'] as $index => $name) {
        if ($fields[$index + 1] !== '-') {
            $headers[$name] = base64_decode($fields[$index + 1]);
        }
    }
    echo verify(base64_decode($fields[0]), $headers, base64_decode($fields[4])) ? "true\n" : "false\n";
}
