using System;
using System.Collections.Generic;
using System.Text;

static class Run
{
    static string Text(string field) => Encoding.UTF8.GetString(Convert.FromBase64String(field));

    static void Main()
    {
        string[] names = { "webhook-id", "webhook-timestamp", "webhook-signature" };
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            string[] fields = line.Split('\t');
            var headers = new Dictionary<string, string>();
            for (int index = 0; index < names.Length; ++index)
                if (fields[index + 1] != "-") headers[names[index]] = Text(fields[index + 1]);
            Func<string, string> header = name => headers.ContainsKey(name) ? headers[name] : null;
            bool isValid = Webhook.Verify(Text(fields[0]), header, Convert.FromBase64String(fields[4]));
            Console.WriteLine(isValid ? "true" : "false");
        }
    }
}
