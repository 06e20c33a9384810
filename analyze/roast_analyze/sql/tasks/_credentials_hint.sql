-- Needs: nothing
-- Advice for a reader that was denied access, in each rule that has one.
CREATE MACRO _credentials_hint() AS
    'Check the credentials of the workers, such as a proxy or token that has expired.';
